#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cairn sync` makes durable what a program has written and never synced: it survives the machine, what was not named
is lost.

The node's processes and the program are killed, so that its memory is gone, and `cairn recover` makes the store.
"""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import under_cairn  # noqa: E402
from scenes import EXIT_NOT_STORED, kill_run, need, run_scenes, status_of  # noqa: E402

SMALL_FILES = 50
PROGRAM = f"""
import os, time
os.makedirs('results/deep')
for number in range({SMALL_FILES}):
    with open(f'results/deep/part {{number}}', 'w') as file: file.write(f'result {{number}}')
for name in ('named', 'other'):
    file = os.open(name, os.O_RDWR | os.O_CREAT, 0o644)
    os.pwrite(file, name.encode() * 30000, 0)
print('written', flush=True)
time.sleep(600)
"""


class Run:
    def __init__(self, work, tiers):
        self.store, self.tier = work / "store", work / "tier"
        self.store.mkdir()
        self.tier.mkdir()
        command = under_cairn.cairn_command([sys.executable, "-c", PROGRAM], self.store,
                                            tiers=[f"{self.tier}:{tier}" for tier in tiers],
                                            options=["--trigger", "on-exit"])
        self.process = subprocess.Popen(command, cwd=self.store, env=under_cairn.clean_environment(),
                                        stdout=subprocess.PIPE, text=True, start_new_session=True)
        need(self.process.stdout.readline() == "written\n", "the program has written")
        self.node = f"run-{self.process.pid}"

    def sync(self, *paths, status=0, stdin=None):
        command = [under_cairn.CAIRN, "sync", "--node", self.node, *paths]
        done = under_cairn.execute(command, self.store, 60, stdin=stdin)
        need(done.status == status, f"cairn sync: {done} {done.output} {done.errors}")
        return done.errors

    def die(self):
        """Program, service and keeper at once."""
        kill_run(self.process, status_of(self.node)["service_pid"])

    def recover(self):
        done = under_cairn.execute([under_cairn.CAIRN, "recover", self.tier], "/", 60)
        need(done.status == 0, f"cairn recover: {done} {done.output} {done.errors}")

    def has(self, name, content):
        path = self.store / name
        return path.exists() and path.read_bytes() == content


def expect_synced(work, tiers):
    """Returns: the run, after its node has died."""
    run = Run(work, tiers)
    need("51 files are durable" in run.sync("results", "named"), "it says how many files")
    run.die()
    return run


def expect_results(run):
    need(run.has("named", b"named" * 30000), "the file that was named is lost")
    for number in range(SMALL_FILES):
        need(run.has(f"results/deep/part {number}", b"result %d" % number), f"part {number} is lost")
    need(not run.has("other", b"other" * 30000), "what was not named is there as well: nothing is shown")


def scene_what_is_named_is_in_the_log(work):
    run = expect_synced(work, ["64M:durable"])
    need(not run.has("named", b"named" * 30000), "the store has it: nothing is shown of the log")
    run.recover()
    expect_results(run)


def scene_without_a_durable_tier_the_store_has_it(work):
    expect_results(expect_synced(work, []))


def scene_a_list_of_paths(work):
    run = Run(work, ["64M:durable"])
    need("1 file is durable" in run.sync("--from", "-", stdin=b"named\n"), "the list is read")
    run.die()
    run.recover()
    need(run.has("named", b"named" * 30000), "the file of the list is lost")


def scene_what_cannot_be_synced_is_named(work):
    run = Run(work, ["64M:durable"])
    need("gone" in run.sync("gone", status=2), "a path that does not exist is named")
    run.node, node = "nobody", run.node
    need("no node named nobody" in run.sync("named", status=2), "a node that does not exist is named")
    run.node = node
    need("1 file is durable" in run.sync("named", "named"), "a file that is named twice is one")
    os.mkfifo(run.store / "fifo")
    errors = run.sync("fifo", "named", status=EXIT_NOT_STORED)
    need("fifo: not durable: Invalid argument" in errors, f"a file that cannot be synced is named: {errors}")
    run.die()


if __name__ == "__main__":
    sys.exit(run_scenes(globals(), sys.argv[1:], contextlib.nullcontext))
