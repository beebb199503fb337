#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who may die, and what is lost then at each level of durability: a scene of the name of each row of the table in
docs/semantics.md, at level `store` and, with a durable tier, at level `node`.

The program has one file that it has synced, one that it has closed, and one that it goes on writing. Nothing is stored
in the background.
"""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import under_cairn  # noqa: E402
from scenes import (EXIT_NOT_STORED, ask, is_alive, kill_run, need, processes, run_scenes,  # noqa: E402
                    status_of, wait_until)

BYTES = 300_000
LEVELS = ("store", "node")
PROGRAM = f"""
import os, sys
synced = os.open('synced', os.O_WRONLY | os.O_CREAT, 0o644)
os.write(synced, b's' * {BYTES})
os.fsync(synced)
with open('closed', 'wb') as closed:
    closed.write(b'c' * {BYTES})
kept = os.open('open', os.O_WRONLY | os.O_CREAT, 0o644)
os.write(kept, b'o' * {BYTES})
print('written', flush=True)
sys.stdin.readline()
for _ in range(40):  # a program without a node finds that out by one of its writes
    os.pwrite(kept, b'o' * 100, 0)
os.fsync(kept)
print('done', flush=True)
"""


class Run:
    """A run whose program has written, with its store and its durable tier."""

    def __init__(self, work, level):
        self.level, self.store, self.tier = level, work / level / "store", work / level / "tier"
        self.store.mkdir(parents=True)
        self.tier.mkdir()
        tiers = [f"{self.tier}:256M:durable" if level == "node" else f"{self.tier}:256M"]
        command = under_cairn.cairn_command([sys.executable, "-c", PROGRAM], self.store, tiers=tiers,
                                            options=["--trigger", "on-exit"])
        self.process = subprocess.Popen(command, cwd=self.store, env=under_cairn.clean_environment(), text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        start_new_session=True)
        need(self.process.stdout.readline() == "written\n", "the program has written")
        self.node = f"run-{self.process.pid}"

    def program(self):
        return int(subprocess.check_output(["pgrep", "-f", "-P", str(self.process.pid), "os.open"]).split()[0])

    def end(self, *statuses, says=""):
        output, errors = self.process.communicate("\n", timeout=120)
        said = f"{self.level}: status {self.process.returncode}: {output} {errors[-1200:]}"
        need(self.process.returncode in statuses, said)
        need(says in errors, said)

    def has(self, *names):
        for name in names:
            path = self.store / name
            found = path.read_bytes() if path.exists() else b""
            need(found == name[:1].encode() * BYTES, f"{self.level}: {name} has {len(found)} bytes")

    def recover(self):
        if self.level == "node":
            done = ask("recover", self.tier)
            need(done.status == 0, f"cairn recover: {done} {done.output} {done.errors}")


def nothing_is_lost(work, die, status=0):
    for level in LEVELS:
        run = Run(work, level)
        die(run)
        run.end(status)
        run.has("synced", "closed", "open")


def scene_a_program_dies(work):
    nothing_is_lost(work, lambda run: os.kill(run.program(), signal.SIGKILL), 128 + signal.SIGKILL)


def scene_the_service_dies(work):
    nothing_is_lost(work, lambda run: os.kill(processes(run.node)[0], signal.SIGKILL))


def scene_the_keeper_dies(work):
    def die(run):
        keeper = processes(run.node)[1]
        os.kill(keeper, signal.SIGKILL)
        wait_until(lambda: processes(run.node)[1] not in (0, keeper), "there is another keeper")
    nothing_is_lost(work, die)


def scene_the_service_dies_again_and_again(work):
    for level in LEVELS:
        run = Run(work, level)
        keeper = processes(run.node)[1]
        with contextlib.suppress(Exception):  # the node ends meanwhile
            for _ in range(3):
                service = status_of(run.node)["service_pid"]
                os.kill(service, signal.SIGKILL)
                wait_until(lambda service=service: not is_alive(service), "the service is gone")
        wait_until(lambda keeper=keeper: not is_alive(keeper), "the rescue is done")
        run.has("synced", "closed", "open")
        run.end(0)
        run.recover()
        run.has("synced", "closed", "open")


def scene_service_and_keeper_die(work):
    for level in LEVELS:
        run = Run(work, level)
        service, keeper = processes(run.node)
        os.kill(keeper, signal.SIGSTOP)  # it begins no other service
        for pid in (service, keeper):
            os.kill(pid, signal.SIGKILL)
        run.end(EXIT_NOT_STORED, says="NOT CONFIRMED")
        run.has("open")
        run.recover()
        run.has("synced", "open")
        closed = run.store / "closed"
        need(not closed.read_bytes().strip(b"\0"), "what is said to be lost is lost")


def scene_everybody_dies(work):
    for level in LEVELS:
        run = Run(work, level)
        kill_run(run.process, processes(run.node)[0])
        run.recover()
        run.has("synced")
        for name in ("closed", "open"):
            need(not (run.store / name).read_bytes().strip(b"\0"), "what is said to be lost is lost")


def scene_the_machine_dies(_work):
    """Programs, service and keeper are killed, and with them memory and pools are gone; random calls, and a model."""
    command = [sys.executable, HERE / "machine_death.py", "--rounds", "2", "--seed", "1"]
    done = under_cairn.execute(command, "/", 120)
    need(done.status == 0, f"{done} {done.output[-800:]} {done.errors[-800:]}")


if __name__ == "__main__":
    sys.exit(run_scenes(globals(), sys.argv[1:], contextlib.nullcontext, "Deaths, row by row"))
