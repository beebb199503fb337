#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The power fails under a node with a durable tier: of the store, an ext4 file system, only what it had written to its
device is left, and names that no fsync has made durable are gone; of the node, its durable tier. After recovery,
everything that was acknowledged is there, names too.

    power_cuts.py [--cuts 4] [--seed S] [--scene sqlite|names|all]

The store's device is a file. Its copy at the instant of the cut is what a disk would have, and is mounted in the place
of the first one. The file system commits its journal by itself only once in an hour, so that what the log answers for
is really lost. For the recovery the machine has been started anew: another boot id is mounted over the kernel's, and
in a time namespace the boot was after the cut. Needs root; in a mount namespace of its own nothing of it outlives the
test.
"""

import argparse
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from machine_death import Machine, await_ready, lines_of, under_cairn  # noqa: E402

IMAGE_BYTES = 64 << 20
CUTS_MORE = 20
BOOT_ID = "/proc/sys/kernel/random/boot_id"


def uptime():
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def system(*words):
    return subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True)


class Powered(Machine):
    """A machine whose store loses with the power what its file system had not written."""

    def __init__(self, work, draw):
        super().__init__(work, draw)
        self.images = 0
        self.image = work / "image0"
        with open(self.image, "wb") as file:
            file.truncate(IMAGE_BYTES)
        system("mkfs.ext4", "-q", "-I", "256", "-E", "lazy_itable_init=0", self.image)
        self.mount()
        shutil.rmtree(self.store / "lost+found")
        os.sync()

    def mount(self):
        system("mount", "-o", "loop,commit=3600", self.image, self.store)

    def live(self, seconds, may_commit=True):
        """The store commits its journal by itself, in half of the lives: with whatever it has at that instant."""
        commits = may_commit and self.draw.random() < 0.5
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(left, self.draw.random() * 0.2))
            if commits:
                system("sync", "-f", self.store)

    def cut(self, child):
        output, errors = self.die(child)
        # A program that outlives its node by an instant may hear that nothing is safe any more.
        # Death may come before it has said what.
        has_said = re.search(r"^[\w.]*Error", errors, re.MULTILINE)
        is_told = not has_said or "[Errno 5]" in errors or "disk I/O error" in errors
        assert "Traceback" not in errors or is_told, errors[-800:]
        self.images += 1
        left = self.work / f"image{self.images}"
        system("cp", "--sparse=always", self.image, left)
        self.off()
        self.image.unlink()
        self.image = left
        self.mount()
        self.start_anew()
        return lines_of(output)

    def start_anew(self):
        identity = self.work / "boot_id"
        if self.images > 1:
            system("umount", BOOT_ID)
        identity.write_text(f"{self.images:08}-0000-4000-8000-000000000000\n")
        system("mount", "--bind", identity, BOOT_ID)
        # The namespace's clock counts whole seconds from the boot.
        time.sleep(1 - uptime() % 1)

    def recover(self):
        words = ["unshare", "--time", f"--boottime=-{int(uptime())}", under_cairn.CAIRN, "recover", self.tier]
        outcome = under_cairn.execute(words, self.work, 60, self.environment())
        assert outcome.status == 0, f"cairn recover: {outcome} {outcome.output} {outcome.errors[-800:]}"
        return "cairn recover"

    def off(self):
        for _ in range(100):
            if subprocess.run(["umount", self.store], capture_output=True).returncode == 0:
                return
            time.sleep(0.05)
        system("umount", "-l", self.store)


# Some transactions outgrow the cache and last: then the base and the journal are stored while they are under way.
SQLITE_PROGRAM = """
import sqlite3, sys, time
base = sqlite3.connect(sys.argv[1], isolation_level=None)
base.execute('PRAGMA journal_mode=DELETE')
base.execute('PRAGMA synchronous=' + sys.argv[2])
base.execute('PRAGMA cache_size=5')
base.execute('CREATE TABLE IF NOT EXISTS numbers (number INTEGER PRIMARY KEY, text TEXT)')
base.execute('CREATE TABLE IF NOT EXISTS pages (number INTEGER PRIMARY KEY, text TEXT)')
if not base.execute('SELECT count(*) FROM pages').fetchone()[0]:
    base.execute('BEGIN')
    base.executemany('INSERT INTO pages VALUES (?, ?)', ((page, '0' * 3000) for page in range(30)))
    base.execute('COMMIT')
print('ready', flush=True)
number = base.execute('SELECT coalesce(max(number), 0) FROM numbers').fetchone()[0]
while True:
    number += 1
    base.execute('BEGIN')
    base.execute('INSERT INTO numbers VALUES (?, ?)', (number, str(number) * 200))
    if number % 5 == 0:
        base.execute('UPDATE pages SET text = ?', (str(number % 10) * 3000,))
        time.sleep(0.06)
    base.execute('COMMIT')
    print(number, 0, flush=True)
"""


def cut_sqlite(machine, state):
    """Rows that were acknowledged are there, and the base is whole."""
    base_path = machine.store / "base.sqlite"
    machine.up()
    # At FULL nothing tells the file system of the journal's end: the last transaction may be undone (SQLite's
    # documentation of PRAGMA synchronous).
    synchronous = machine.draw.choice(["FULL", "EXTRA"])
    child = machine.start(sys.executable, "-c", SQLITE_PROGRAM, base_path, synchronous)
    await_ready(child)
    machine.live(0.05 + machine.draw.random() * 0.8)
    told = [int(number) for number, _ in machine.cut(child)]
    last = max([state.get("rows", 0)] + told)
    lost = sorted(os.listdir(machine.store))
    how = machine.recover()
    base = sqlite3.connect(base_path)
    assert base.execute("PRAGMA integrity_check").fetchall() == [("ok",)], f"the base is broken (by {how})"
    rows = base.execute("SELECT number, text FROM numbers ORDER BY number").fetchall()
    pages = base.execute("SELECT DISTINCT text FROM pages").fetchall()
    base.close()
    last_pages = len(rows) // 5 * 5
    assert pages == [(str(last_pages % 10) * 3000,)], f"pages of {len(pages)} transactions (by {how})"
    assert [number for number, _ in rows] == list(range(1, len(rows) + 1)), "rows are missing"
    assert all(text == str(number) * 200 for number, text in rows)
    may_be = (last, last + 1) if synchronous == "EXTRA" else (last - 1, last, last + 1)
    told_of = f"{len(rows)} rows at {synchronous}, acknowledged {last} (by {how}); the store had {lost}"
    assert len(rows) in may_be, told_of
    state["rows"] = len(rows)
    return f"{len(told)} commits, {len(rows)} rows, by {how}"


# Replaces one file, and moves a chain of others on: log.0 becomes log.1, and that log.2. In every second round the log
# has no words for something, and the store makes the names durable: a folder; or a lock that comes and goes before the
# log's file of that name is replaced, and a file that goes to another directory, where the store has its name first. An
# empty file marks the round.
NAMES_PROGRAM = """
import os, sys
directory = os.open('.', os.O_RDONLY)
def write(name, number):
    file = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o640)
    os.write(file, b'%08d' % number * 700)
    os.fsync(file)
    os.close(file)
number = int(sys.argv[1])
os.mkdir('aside')
aside = os.open('aside', os.O_RDONLY)
os.fsync(directory)
os.fsync(aside)
print('ready', flush=True)
while True:
    number += 1
    for name in ('value.new', 'log.new'):
        if os.path.exists(name):
            os.unlink(name)
    if number % 4 == 2:
        os.close(os.open('lock', os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o640))
        os.unlink('lock')
        if os.path.exists('moved.new'):
            os.rename('moved.new', 'aside/moved')
            os.fsync(aside)
    if number % 4 == 1:
        write('moved.new', number)
    write('value.new', number)
    os.rename('value.new', 'value')
    write('log.new', number)
    for old, new in (('log.1', 'log.2'), ('log.0', 'log.1'), ('log.new', 'log.0')):
        if os.path.exists(old):
            os.rename(old, new)
    if number % 4 == 0:
        os.mkdir(f'folder{number}')
        if os.path.exists(f'folder{number - 4}'):
            os.rmdir(f'folder{number - 4}')
    os.close(os.open(f'mark{number}', os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o640))
    if os.path.exists(f'mark{number - 1}'):
        os.unlink(f'mark{number - 1}')
    os.fsync(directory)
    print(number, 0, flush=True)
"""


def moved_file(directory):
    """The round that has made it. Ends the directory."""
    path = directory / "moved"
    text = path.read_bytes() if path.exists() else None
    assert text is None or len(text) == 5600 and text == text[:8] * 700, f"{path} is no whole file: {len(text)}"
    shutil.rmtree(directory)
    return int(text[:8]) if text else None


def cut_names(machine, state):
    """The names mean what they meant at the last fsync of the directory, or at the next one, or in between."""
    first = state.get("number", 0)
    machine.up()
    child = machine.start(sys.executable, "-c", NAMES_PROGRAM, str(first))
    await_ready(child)
    machine.live(0.05 + machine.draw.random() * 0.5, may_commit=state.get("lost") != 0)
    rounds = [int(number) for number, _ in machine.cut(child)]
    last = max([first] + rounds)
    before = sorted(os.listdir(machine.store))
    marks = {f"mark{last}", f"mark{last + 1}"}
    state["lost"] = state.get("lost", 0) + (bool(rounds) and not marks & set(before))
    how = machine.recover()
    found = {}
    moved = moved_file(machine.store / "aside")
    folders = [name for name in before if name.startswith("folder")]
    found_marks = {name for name in os.listdir(machine.store) if name.startswith("mark")}
    for name in set(os.listdir(machine.store)) - set(folders) - found_marks - {"lock"}:
        text = (machine.store / name).read_bytes()
        if not name.endswith(".new"):
            assert len(text) == 5600 and text == text[:8] * 700, f"{name} is no whole file: {len(text)}, {text[:16]}"
            found[name] = int(text[:8])
            assert (machine.store / name).stat().st_mode & 0o777 == 0o640, f"{name} has another mode (by {how})"
    told = f"{found} (after {last}, by {how}; the store had {before})"
    if rounds:
        assert found["value"] in (last, last + 1), f"value: {told}"
        # A rename that was under way may have left one name of the chain empty.
        numbers = [found[name] for name in ("log.0", "log.1", "log.2") if name in found]
        whole = [number for number in (last, last - 1, last - 2) if number > first]
        assert numbers in (whole, [last + 1, *whole[:2]], whole[:2]), f"the chain: {told}"
        folder = last // 4 * 4
        is_sure = folder > first and (last + 1) % 4 != 0
        assert not is_sure or f"folder{folder}" in folders, f"folder{folder}: {folders}, {told}"
        assert found_marks & marks and found_marks <= marks, f"marks: {found_marks}, {told}"
        # The last round that has moved a file, and the one that may have been under way.
        round_ = last - (last - 2) % 4
        may_be = {round_ - 1 if round_ - 1 > first else None} | ({last} if last % 4 == 1 else set())
        assert moved in may_be, f"aside/moved: {moved}, not {may_be}; {told}"
    strange = [name for name in found if name not in ("value", "log.0", "log.1", "log.2")]
    assert not strange, f"files that nobody made: {strange}"
    # The chain may have a gap: the next life begins a new one.
    for name in os.listdir(machine.store):
        os.rmdir(machine.store / name) if name in folders else os.unlink(machine.store / name)
    os.sync()
    state["number"] = last + 10
    return f"{len(rounds)} rounds, by {how}; {state['lost']} times so far the store had lost the last one's name"


SCENES = {"sqlite": cut_sqlite, "names": cut_names}


def may_mount():
    words = ["unshare", "-m", "--propagation", "private", "true"]
    has_tools = all(shutil.which(tool) for tool in ("mkfs.ext4", "unshare", "mount"))
    return os.geteuid() == 0 and has_tools and subprocess.run(words, capture_output=True).returncode == 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cuts", type=int, default=4)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--scene", choices=["all", *SCENES], default="all")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not under_cairn.have_cairn() or not may_mount():
        print("no build, or no right to mount")
        return under_cairn.SKIPPED
    if not options.inside:
        words = ["unshare", "-m", "--propagation", "private", sys.executable, __file__, *sys.argv[1:], "--inside"]
        return subprocess.run(words).returncode
    for scene in list(SCENES) if options.scene == "all" else [options.scene]:
        work = under_cairn.work_directory("power-cuts")
        machine = Powered(work, random.Random(options.seed))
        state = {}
        cut = 0
        # The test is of names that the log alone has: it goes on until the store has lost an acknowledged one.
        while cut < options.cuts or state.get("lost") == 0:
            assert cut < options.cuts + CUTS_MORE, f"{scene}: the log has answered for no name (--seed {options.seed})"
            try:
                told = SCENES[scene](machine, state)
            except BaseException:
                print(f"{scene}, cut {cut}: --scene {scene} --cuts {cut + 1} --seed {options.seed}; left in {work}",
                      flush=True)
                raise
            print(f"{scene}, cut {cut}: {told}", flush=True)
            cut += 1
        machine.off()
        system("umount", BOOT_ID)
        under_cairn.remove(work)
    return 0


if __name__ == "__main__":
    sys.exit(main())
