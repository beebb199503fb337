#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A rescue of a node whose store has lost bytes, or may have: an fsync has failed, and the kernel tells of that once.

    rescued_losses.py --store PROGRAM [SCENE ...]

PROGRAM is the file system of faulty_store.c. The service's first death is its last here: a successor would store again
what the rescue has to. Where FUSE may not be mounted the test is skipped.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from scenes import (  # noqa: E402
    EXIT_NOT_STORED, ask, launch, messages, mounted, need, need_status, processes, run_scenes_of_a_store,
    status_of, under_cairn,
    wait_until)

CONTENT = b"written" * 60000

# The service stores the file, which is not durable then. A mapping, or a larger file, takes it out of the tiers. The
# program waits for its end.
PROGRAM = """
import mmap, os, sys, time
work, how = sys.argv[1], sys.argv[2:]
def wait_for(name):
    while not os.path.exists(work + "/" + name): time.sleep(0.02)
file = os.open("f", os.O_RDWR | os.O_CREAT, 0o644)
os.write(file, b"written" * 60000)
if "synced" in how: os.fsync(file)
open(work + "/written", "w").close()
wait_for("stored")
if "evicted" in how: open("other", "wb").write(bytes(100 << 20))
if "mapped" in how: mapping = mmap.mmap(file, 0)
if "closed" in how: os.close(file)
open(work + "/ready", "w").close()
wait_for("end")
try:
    if "again" in how: os.fsync(file)
except OSError as error:
    open(work + "/failed", "w").write(os.strerror(error.errno))
"""


class Scene:
    def __init__(self, work, store):
        self.work, self.store = work, store
        self.behind = store.behind / "f"
        self.tier = work / "tier"
        self.run = None

    def launch(self, *how, ram="64M", options=()):
        script = self.work / "program.py"
        script.write_text(PROGRAM)
        command = under_cairn.cairn_command([sys.executable, script, self.work, *how], self.store.path,
                                            ram=ram, options=options)
        self.run = launch(command, self.work, self.store.path,
                          {"XDG_STATE_HOME": str(self.work / "state"), "CAIRN_TEST_CAPACITIES": "deaths=1"})

    def wait_until_stored(self):
        wait_until(lambda: self.behind.exists() and self.behind.read_bytes() == CONTENT, "the service has stored it",
                   found=lambda: messages(self.work))
        (self.work / "stored").touch()
        wait_until((self.work / "ready").exists, "the program goes on", found=lambda: messages(self.work))

    def drain_that_hangs(self):
        self.store.obey("fsync hang /f")
        return subprocess.Popen([str(under_cairn.CAIRN), "drain", "--node", f"run-{self.run.pid}"],
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def kill_service(self):
        os.kill(status_of(f"run-{self.run.pid}")["service_pid"], signal.SIGKILL)

    def die_in_an_fsync(self, *how, ram="64M", options=()):
        """The store loses the file, and nobody hears of it."""
        self.launch(*how, ram=ram, options=options)
        if "synced" in how:
            # On a slow machine the log has the file synced before the drain does.
            wait_until((self.work / "written").exists, "the program has written", found=lambda: messages(self.work))
            self.store.obey("fsync hang /f")
        self.wait_until_stored()
        drain = self.drain_that_hangs()
        time.sleep(1)
        need(drain.poll() is None, "the drain waits for no fsync")
        self.kill_service()
        self.lose_unheard()
        drain.wait(60)

    def lose_unheard(self):
        status = self.behind.stat()
        self.behind.write_bytes(b"lost by the device".ljust(len(CONTENT)))
        os.utime(self.behind, ns=(status.st_atime_ns, status.st_mtime_ns))
        self.store.obey()

    def lose(self):
        """A drain hears of it."""
        self.launch("mapped", options=["--trigger", "on-exit"])
        wait_until((self.work / "written").exists, "the program has written", found=lambda: messages(self.work))
        drain = self.drain_that_hangs()
        self.wait_until_stored()
        self.store.obey("fsync lost /f")
        need(drain.wait(60) == EXIT_NOT_STORED, "nothing is lost")
        self.store.obey()

    def need_stored_again(self):
        wait_until(lambda: self.behind.read_bytes() == CONTENT, "the rescue stores it again", 20)
        (self.work / "end").touch()
        need_status(self.run, 0, self.work)
        need(not (self.work / "state/cairn/rescue").exists(), "there was nothing to save")

    def listed(self):
        """The run ends with 74. Where the rescue has saved files, and what its list says of this one."""
        (self.work / "end").touch()
        need_status(self.run, EXIT_NOT_STORED, self.work)
        found = re.search(r"listed in (\S+)/list", messages(self.work))
        need(found and "NOT STORED" in messages(self.work), f"no list: {messages(self.work)}")
        directory = Path(found.group(1))
        rows = [line.split("\t") for line in (directory / "list").read_text().splitlines()[1:]]
        return directory, [row for row in rows if row[8] == str(self.store.path / "f")]

    def need_named(self):
        """The list has the file as one that may have lost bytes."""
        _, rows = self.listed()
        lost = [row for row in rows if row[2] == "-"]
        need(lost and "lost" in lost[0][9], f"it does not say that the file has lost bytes: {rows}")

    def need_saved(self):
        directory, rows = self.listed()
        need(rows and all(row[2] != "-" for row in rows), f"it says that bytes are lost: {rows}")
        need((directory / rows[0][2]).read_bytes() == CONTENT, "what is saved is something else")


def scene_the_tiers_have_all_of_it(scene):
    """The service dies in an fsync that fails: the rescue stores the file again, and all is well."""
    scene.die_in_an_fsync()
    scene.need_stored_again()


def scene_the_tiers_have_all_of_a_closed_file(scene):
    """The same of a file that no program has open."""
    scene.die_in_an_fsync("closed")
    scene.need_stored_again()


def scene_the_tiers_have_nothing_of_it(scene):
    """The same, and no tier has the bytes any more: the file is named."""
    scene.die_in_an_fsync("mapped")
    scene.need_named()


def scene_the_log_has_all_of_it(scene):
    """The same, and the program has made the file durable: its log keeps it, and recovery brings it back. That the
    program syncs what the store has now makes nothing else durable."""
    scene.tier.mkdir(mode=0o700)
    scene.die_in_an_fsync("synced", "evicted", "again", ram="4M", options=["--tier", f"{scene.tier}:64M:durable"])
    scene.need_named()
    need((scene.work / "failed").exists(), "an fsync has said that the file is durable")
    recovered = ask("recover", str(scene.tier))
    need(recovered.status == 0, f"cairn recover: {recovered} {recovered.output} {recovered.errors}")
    need(scene.behind.read_bytes() == CONTENT, "the log has forgotten it")


def scene_the_service_has_heard_of_a_loss(scene):
    """A drain has said that the file has lost bytes. The rescue says it again."""
    scene.lose()
    scene.kill_service()
    scene.need_named()


def scene_a_rescue_dies_in_an_fsync(scene):
    """The next rescue does not touch the file in its store, and saves what the tiers have of it."""
    scene.launch()
    scene.wait_until_stored()
    scene.store.obey("fsync hang /f")
    keeper = processes(f"run-{scene.run.pid}")[1]
    scene.kill_service()
    wait_until(lambda: rescues_of(keeper), "a rescue is at work")
    time.sleep(1)  # it waits for the fsync
    for rescue in rescues_of(keeper):
        os.kill(rescue, signal.SIGKILL)
    scene.lose_unheard()
    scene.need_saved()


def rescues_of(keeper):
    children = Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split()
    return [int(child) for child in children if Path(f"/proc/{child}/comm").read_text() == "cairn-rescue\n"]


def scene_a_lost_file_is_deleted(scene):
    """Nobody misses a deleted file."""
    scene.lose()
    (scene.store.path / "f").unlink()
    scene.kill_service()
    (scene.work / "end").touch()
    need_status(scene.run, 0, scene.work)


@contextlib.contextmanager
def prepare(work, program):
    store = mounted(work, program)
    try:
        yield Scene(work, store)
    finally:
        store.close()


if __name__ == "__main__":
    sys.exit(run_scenes_of_a_store(globals(), prepare))
