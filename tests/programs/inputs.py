# SPDX-License-Identifier: Apache-2.0
"""Input data of the workloads: the same bytes, names and times on every machine, made once."""

import fcntl
import os
import random
import shutil
from pathlib import Path

WORDS = ("cairn stone tier bucket block arena flush drain lease burst buffer store shore map record "
         "file page cache node prefetch evict promote organizer catalog").split()
VERSION = "2"


def text(generator, lines):
    return "".join(" ".join(generator.choices(WORDS, k=generator.randint(3, 14))) + f" {i}\n"
                   for i in range(lines))


def make(directory):
    """Returns a directory with: words.txt, data.bin, sparse.bin and the folder `tree`.

    Safe to call from several processes at once: one makes it beside its place while the others wait.
    """
    directory = Path(directory)
    stamp = directory / ".made"
    directory.parent.mkdir(parents=True, exist_ok=True)
    with open(directory.with_name(directory.name + ".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if stamp.exists() and stamp.read_text() == VERSION:
            return directory
        half_made = directory.with_name(directory.name + ".half-made")
        for left in (directory, half_made):
            shutil.rmtree(left, ignore_errors=True)
        fill(half_made)
        (half_made / ".made").write_text(VERSION)
        half_made.rename(directory)
    return directory


def fill(directory):
    tree = directory / "tree"
    tree.mkdir(parents=True)
    generator = random.Random(20260101)
    (directory / "words.txt").write_text(text(generator, 60000))
    (directory / "data.bin").write_bytes(generator.randbytes(7_340_033))
    with open(directory / "sparse.bin", "wb") as sparse:
        for at in (0, 1_000_003, 5_242_880):
            sparse.seek(at)
            sparse.write(generator.randbytes(70_000))
        sparse.truncate(9_000_000)
    for folder in range(12):
        home = tree / f"part{folder % 4}" / f"folder {folder}"
        home.mkdir(parents=True)
        for number in range(25):
            path = home / f"file{number}.{'txt' if number % 2 else 'bin'}"
            if number % 2:
                path.write_text(text(generator, generator.randint(0, 200)))
            else:
                path.write_bytes(generator.randbytes(generator.choice((0, 1, 4095, 4096, 65537, 20000))))
            path.chmod(0o755 if number % 7 == 0 else 0o644)
        (home / "link").symlink_to("file1.txt")
        os.link(home / "file3.txt", home / "hard.txt")
    for number, path in enumerate(sorted(directory.rglob("*"))):
        if not path.is_symlink():
            os.utime(path, ns=(1_100_000_000_000_000_000, 1_200_000_000_123_456_789 + number * 10**9))
