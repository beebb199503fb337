# SPDX-License-Identifier: Apache-2.0
"""What the testbed has made, on disk, so that any later `down` can find it; and small shared verbs."""
import contextlib
import ctypes
import fcntl
import json
import os
import pathlib
import signal
import subprocess

ROOT = pathlib.Path("/run/cairn-testbed")
MOUNTS = ROOT / "mnt"
STATE_FILE = ROOT / "state.json"
LOCK_FILE = pathlib.Path("/run/cairn-testbed.lock")
IMAGE_PREFIX = "cairn-testbed-"


class TestbedError(Exception):
    """Something the user must know: the message names the thing and the remedy."""


@contextlib.contextmanager
def locked():
    """Only one testbed command works at a time; the lock dies with its process."""
    while True:
        descriptor = os.open(LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        # The previous holder unlinks the file, so the one just locked may no longer be the one others see.
        if LOCK_FILE.exists() and os.fstat(descriptor).st_ino == LOCK_FILE.stat().st_ino:
            break
        os.close(descriptor)
    try:
        yield
    finally:
        LOCK_FILE.unlink(missing_ok=True)
        os.close(descriptor)


def load() -> dict:
    try:
        return json.loads(STATE_FILE.read_text())
    except (OSError, ValueError):
        return {}


def record(name: str, **fields) -> None:
    """Merges fields into the entry of a device; atomic, so that a crash leaves the old or the new."""
    known = load()
    known.setdefault(name, {}).update(fields)
    _store(known)


def forget(name: str) -> None:
    known = load()
    if known.pop(name, None) is not None:
        _store(known)


def _store(known: dict) -> None:
    ROOT.mkdir(mode=0o755, exist_ok=True)
    temporary = STATE_FILE.with_suffix(".new")
    temporary.write_text(json.dumps(known, indent=1))
    temporary.rename(STATE_FILE)


def remove_if_empty() -> None:
    """Removes the run directory once nothing is up; rmdir refuses whatever is not empty."""
    if load():
        return
    STATE_FILE.unlink(missing_ok=True)
    for directory in (MOUNTS, ROOT):
        with contextlib.suppress(OSError):
            directory.rmdir()


def mount_point(name: str) -> pathlib.Path:
    return MOUNTS / name


def _die_with_parent() -> None:
    parent_death_signal = 1
    ctypes.CDLL(None).prctl(parent_death_signal, signal.SIGKILL)


def run(*command, check: bool = True, bound: bool = False) -> str:
    """Runs a tool and returns its output; a failure becomes a message with the tool's own words.

    A bound tool is killed when this process dies, so that it does not keep a device busy for ever.
    """
    words = [str(word) for word in command]
    try:
        result = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                start_new_session=True, preexec_fn=_die_with_parent if bound else None,
                                check=False)
    except FileNotFoundError as error:
        raise TestbedError(f"{words[0]} is not installed; install it and try again") from error
    if check and result.returncode != 0:
        raise TestbedError(f"'{' '.join(words)}' failed: {result.stdout.strip()[-600:]}")
    return result.stdout


def mounted(path) -> bool:
    """Whether path is a mount point, from the mount table: stat would hang on a dead FUSE mount."""
    with open("/proc/self/mountinfo") as table:
        return any(line.split()[4] == str(path) for line in table)


def mounts_below(path) -> list:
    with open("/proc/self/mountinfo") as table:
        points = [line.split()[4] for line in table]
    return sorted((point for point in points if point.startswith(f"{path}/")), reverse=True)


def unmount(path) -> None:
    while mounted(path):
        if "failed" in (output := run("umount", path, check=False)) or mounted(path):
            # Lazy, when a process still sits in it: the mount must not survive the testbed.
            run("umount", "--lazy", path, check=False)
            if mounted(path):
                raise TestbedError(f"cannot unmount {path}: {output.strip()}")
