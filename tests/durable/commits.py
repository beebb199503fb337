#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An fsync of a file that was there before asks the store once, and the durable tier's log from then on.

The bytes that such a file has when it is opened may not be safe in the store yet, so its first fsync goes there.
"""

import contextlib
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import under_cairn  # noqa: E402
from scenes import need, run_scenes, status_of  # noqa: E402

COMMITS = 30
PROGRAM = f"""
import os, sys, time
sys.stdin.readline()
file = os.open('data', os.O_RDWR)
if sys.argv[1] == 'first': os.fsync(file)
for number in range({COMMITS}):
    os.pwrite(file, bytes([number]) * 4096, number % 4 * 4096)
    os.fsync(file)
print('done', flush=True)
sys.stdin.readline()
"""
# A child stores through a mapping and ends without taking it down, which leaves the file to the kernel until the parent
# writes again.
CHILD = """
import mmap, signal
if os.fork() == 0:
    shared = mmap.mmap(file, 65536)
    shared[40960:40964] = b'BBBB'
    os.kill(os.getpid(), signal.SIGKILL) if sys.argv[1] == 'killed' else os._exit(0)
os.wait()
time.sleep(0.5)
os.pwrite(file, b'A', 0)
os.fsync(file)
print('done', flush=True)
sys.stdin.readline()
"""
# The file is changed by somebody else between the two opens.
REOPEN = """
import os, sys
for _ in range(2):
    sys.stdin.readline()
    file = os.open('data', os.O_RDWR)
    found = os.pread(file, 4, 40960)
    os.fsync(file)
    os.pwrite(file, b'1', 0)
    os.fsync(file)
    os.close(file)
    print('done', flush=True)
sys.stdin.readline()
sys.exit(0 if found == b'BBBB' else 1)
"""


@contextlib.contextmanager
def running(work, program, *words, trigger="on-exit"):
    """Gives a function that lets the program go on to its next stop, and says what fsyncs have asked by then."""
    store, tier = work / "store", work / "tier"
    store.mkdir()
    tier.mkdir()
    (store / "data").write_bytes(b"x" * 65536)
    command = under_cairn.cairn_command([sys.executable, "-c", program, *words], store, tiers=[f"{tier}:64M:durable"],
                                        options=["--trigger", trigger])
    with subprocess.Popen(command, cwd=store, env=under_cairn.clean_environment(), stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as run:
        def go_on():
            run.stdin.write("\n")
            run.stdin.flush()
            need(run.stdout.readline() == "done\n", "the program has made its changes")
            return status_of(f"run-{run.pid}")["durability"]

        yield go_on
        run.communicate("\n", timeout=60)
    need(run.returncode == 0, f"exit status {run.returncode}")


def expect_once(work, *words):
    with running(work, PROGRAM, *words) as go_on:
        fsyncs = go_on()
    need(fsyncs["stored"] <= 2, f"the store is asked again and again: {fsyncs}")
    need(fsyncs["logged"] >= COMMITS - 2, f"the log is not asked: {fsyncs}")


def expect_kernels_bytes_safe(work, *words):
    with running(work, PROGRAM + CHILD, *words) as go_on:
        before = go_on()
        after = go_on()
    need(after["stored"] > before["stored"], f"the store was not asked for what the kernel has: {before} {after}")


def scene_a_child_ends_with_a_mapping(work):
    expect_kernels_bytes_safe(work, "ended")


def scene_a_child_is_killed_with_a_mapping(work):
    expect_kernels_bytes_safe(work, "killed")


def scene_another_program_writes_while_it_is_closed(work):
    with running(work, REOPEN, trigger="periodic") as go_on:
        before = go_on()
        # Until the file is stored, and clean.
        time.sleep(2)
        with open(work / "store" / "data", "r+b") as file:
            file.seek(40960)
            file.write(b"BBBB")
        after = go_on()
    need(after["stored"] > before["stored"], f"the store was not asked for the other's bytes: {before} {after}")


def scene_changes_between_fsyncs(work):
    expect_once(work, "changes")


def scene_nothing_has_changed_at_the_first_fsync(work):
    expect_once(work, "first")


if __name__ == "__main__":
    sys.exit(run_scenes(globals(), sys.argv[1:], contextlib.nullcontext))
