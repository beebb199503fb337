#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An fsync of a file that was there before asks the store once, and the durable tier's log from then on.

The bytes that such a file has when it is opened may not be safe in the store yet, so its first fsync goes there.
"""

import contextlib
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import under_cairn  # noqa: E402
from scenes import need, run_scenes, status_of  # noqa: E402

COMMITS = 30
PROGRAM = f"""
import os, sys, time
file = os.open('data', os.O_RDWR)
if sys.argv[1] == 'first': os.fsync(file)
for number in range({COMMITS}):
    os.pwrite(file, bytes([number]) * 4096, number % 4 * 4096)
    os.fsync(file)
print('done', flush=True)
sys.stdin.read()
"""


def expect_once(work, *words):
    store, tier = work / "store", work / "tier"
    store.mkdir()
    tier.mkdir()
    (store / "data").write_bytes(b"x" * 65536)
    command = under_cairn.cairn_command([sys.executable, "-c", PROGRAM, *words], store, tiers=[f"{tier}:64M:durable"],
                                        options=["--trigger", "on-exit"])
    with subprocess.Popen(command, cwd=store, env=under_cairn.clean_environment(), stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as run:
        need(run.stdout.readline() == "done\n", "the program has made its changes")
        fsyncs = status_of(f"run-{run.pid}")["durability"]
        run.communicate("", timeout=60)
    need(run.returncode == 0, f"exit status {run.returncode}")
    need(fsyncs["stored"] <= 2, f"the store is asked again and again: {fsyncs}")
    need(fsyncs["logged"] >= COMMITS - 2, f"the log is not asked: {fsyncs}")


def scene_changes_between_fsyncs(work):
    expect_once(work, "changes")


def scene_nothing_has_changed_at_the_first_fsync(work):
    expect_once(work, "first")


if __name__ == "__main__":
    sys.exit(run_scenes(globals(), sys.argv[1:], contextlib.nullcontext))
