#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints: what a program has written and never synced survives the machine, as old as the last checkpoint.

The node's processes and the program are killed, so that its memory is gone, and `cairn recover` makes the store.
Without checkpoints the same data is lost, which shows that the test can see it.
"""

import contextlib
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import under_cairn  # noqa: E402
from scenes import kill_run, need, run_scenes, status_of, wait_until  # noqa: E402

MEGABYTES = 24
PROGRAM = f"""
import os, sys, time
file = os.open('data', os.O_RDWR | os.O_CREAT, 0o644)
for number in range({MEGABYTES}): os.pwrite(file, bytes([number + 1]) * (1 << 20), number << 20)
print('written', flush=True)
time.sleep(600)
"""
CONTENT = b"".join(bytes([number + 1]) * (1 << 20) for number in range(MEGABYTES))


class Run:
    def __init__(self, work, interval, options=()):
        self.store, self.tier = work / "store", work / "tier"
        self.store.mkdir()
        self.tier.mkdir()
        configuration = work / "cairn.yaml"
        configuration.write_text(f"checkpoint: {{interval: {interval}}}\n")
        command = under_cairn.cairn_command([sys.executable, "-c", PROGRAM], self.store,
                                            tiers=[f"{self.tier}:256M:durable"], options=options)
        command[2:2] = ["--config", str(configuration)]
        self.process = subprocess.Popen(command, cwd=self.store, env=under_cairn.clean_environment(),
                                        stdout=subprocess.PIPE, text=True, start_new_session=True)
        need(self.process.stdout.readline() == "written\n", "the program has written")

    def status(self):
        return status_of(f"run-{self.process.pid}")

    def checkpoint(self):
        return self.status()["durability"]["checkpoint"]

    def die(self):
        """Program, service and keeper at once."""
        kill_run(self.process, self.status()["service_pid"])

    def recover(self):
        done = under_cairn.execute([under_cairn.CAIRN, "recover", self.tier], "/", 60)
        need(done.status == 0, f"cairn recover: {done} {done.output} {done.errors}")
        return (self.store / "data").read_bytes()


def scene_what_is_dirty_survives(work):
    run = Run(work, 1, ["--trigger", "on-exit"])
    wait_until(lambda: run.checkpoint()["bytes"] >= MEGABYTES << 20, "a checkpoint has all of the file")
    before = run.checkpoint()
    wait_until(lambda: run.checkpoint()["count"] > before["count"], "another checkpoint")
    need(run.checkpoint()["bytes"] < before["bytes"] + (1 << 20), "what has not changed is logged again")
    run.die()
    need((run.store / "data").stat().st_size == 0, "the store has it: nothing is shown")
    need(run.recover() == CONTENT, "what was in the checkpoint is lost")


def scene_without_checkpoints_it_is_lost(work):
    run = Run(work, 0, ["--trigger", "on-exit"])
    run.die()
    need(run.recover() != CONTENT, "it survives without a checkpoint: the other scene shows nothing")


def scene_what_was_stored_past_the_log_is_made_durable(work):
    """The flusher has stored the file before, and nobody has made that durable in the store."""
    run = Run(work, 3)
    wait_until(lambda: run.status()["backing"]["dirty_bytes"] == 0, "the flusher has stored the file")
    wait_until(lambda: run.checkpoint()["files_stored"] == 1, "a checkpoint has made it durable")
    count = run.checkpoint()["count"]
    wait_until(lambda: run.checkpoint()["count"] > count + 1, "further checkpoints")
    need(run.checkpoint()["files_stored"] == 1, "a file that is durable is made so again")
    run.die()
    need(run.recover() == CONTENT, "what was stored is lost")


if __name__ == "__main__":
    sys.exit(run_scenes(globals(), sys.argv[1:], contextlib.nullcontext))
