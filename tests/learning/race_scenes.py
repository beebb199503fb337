# SPDX-License-Identifier: Apache-2.0
"""Readers that are fetched for ahead, while others write, truncate, rename, unlink and create the same file anew: what
they read is what somebody wrote there, and in the end all is as its writers left it. Nobody who is killed at it, and
nobody who has closed the file, leaves anything behind."""

import json
import os
import subprocess
import sys
from pathlib import Path

import racer
from stage import BLOCK, HERE, LONG_SECONDS, MIB, Stage, eventually

SIZE = 12 * MIB
READERS = 2
# So little that blocks leave all the time.
SMALL_RAM = "8M"
WRITERS = {
    "write": lambda rounds: [("write", 0, SIZE // 2 + 777, 1, rounds), ("write", SIZE // 2 + 777, SIZE, 2, rounds)],
    "change": lambda rounds: [("change", SIZE, 3, rounds)],
    "replace": lambda rounds: [("replace", SIZE, 4, rounds)],
}


def racing(stage, path, *words):
    role, *rest = words
    return stage.start(sys.executable, HERE / "racer.py", role, path, *rest, stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE)


def end_of(program):
    out, err = program.communicate(timeout=100)
    assert program.returncode == 0, f"{program.args[-4:]}: {program.returncode}: {err[-800:]}"
    return json.loads(out)


def race(stage, kind, rounds):
    path = stage.directory / "raced"
    until = stage.work / "until"
    racer.fill(path, SIZE, 0)
    readers = [racing(stage, path, "read", until) for _ in range(READERS)]
    try:
        assert eventually(lambda: stage.fetched()["used_bytes"] > 0 or stage.status()["events"]["lost"] > 0), \
            "nothing is fetched ahead"
        writers = [racing(stage, path, *words) for words in WRITERS[kind](rounds)]
        while any(writer.poll() is None for writer in writers):
            # So that all of it is fetched again. At times there is no such name, or it is busy.
            stage.cairn("stage-out", "--node", "n", path, check=False)
        left = [end_of(writer) for writer in writers]
    finally:
        until.touch()
    read = [end_of(reader) for reader in readers]
    assert all(said["laps"] >= 1 for said in read), read
    is_as_left(stage, path, left)
    assert path.stat().st_size == SIZE, path.stat()
    assert stage.status()["locks_held_by_dead"] == 0
    assert eventually(lambda: not stage.open_in_service("/data/raced")), stage.open_in_service("/data/raced")


def is_as_left(stage, path, left):
    """For another program, and on the backing store."""
    for part in left:
        seen = stage.run(sys.executable, "-c", DIGEST, path, part["first"], part["end"]).split()[-1]
        assert seen == part["digest"], f"a reader sees other bytes in the end than were written: {part}"
    stage.cairn("drain", "--node", "n")
    for part in left:
        assert racer.digest_of(path, part["first"], part["end"]) == part["digest"], f"stored otherwise: {part}"


DIGEST = """
import hashlib, os, sys
first, end = map(int, sys.argv[2:4])
file, digest = os.open(sys.argv[1], os.O_RDONLY), hashlib.sha256()
while first < end:
    data = os.pread(file, min(65536, end - first), first)
    assert data, f"the file ends at {first}"
    digest.update(data)
    first += len(data)
print(digest.hexdigest())
"""


def writers_race_readers():
    with Stage() as stage:
        race(stage, "write", 250)


def writers_race_readers_in_little_ram():
    with Stage(ram=SMALL_RAM) as stage:
        race(stage, "write", 150)
        assert stage.counter("evicted_blocks") > 0, stage.status()["counters"]


def truncations_race_readers():
    with Stage() as stage:
        race(stage, "change", 200)


def truncations_race_readers_in_little_ram():
    with Stage(ram=SMALL_RAM) as stage:
        race(stage, "change", 150)


def replacements_race_readers():
    with Stage() as stage:
        race(stage, "replace", 30)


def replacements_race_readers_in_little_ram():
    with Stage(ram=SMALL_RAM) as stage:
        race(stage, "replace", 20)


def few_events_cost_no_data():
    """With 99 % of the events lost all bytes are the same."""
    for kind, rounds in (("write", 30), ("change", 20), ("replace", 5)):
        with Stage(variables={"CAIRN_TEST_CAPACITIES": "event_percent=1"}, ram=SMALL_RAM) as stage:
            race(stage, kind, rounds)
            events = stage.status()["events"]
            assert events["lost"] > 10 * events["passed_on"], events


def some_events_cost_no_data():
    """Where every other open, read and close is lost, what the node takes for a stream is often none any more."""
    with Stage(variables={"CAIRN_TEST_CAPACITIES": "event_percent=50"}, ram=SMALL_RAM) as stage:
        race(stage, "change", 60)
        assert stage.fetched()["fetched_bytes"] > 0, stage.status()["events"]


def kill_program_of(launcher):
    """With the signal that nobody sees; its launcher ends with it."""
    def programs():
        return Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text().split()
    assert eventually(programs), "the launcher has started nothing"
    for pid in programs():
        os.kill(int(pid), 9)
    launcher.communicate(timeout=LONG_SECONDS)


def nothing_is_left(stage, name):
    assert eventually(lambda: stage.status()["locks_held_by_dead"] == 0), stage.status()
    assert eventually(lambda: not stage.status()["clients"]), "who was killed is still known"
    assert eventually(lambda: not stage.open_in_service(f"/data/{name}")), stage.open_in_service(f"/data/{name}")
    stage.cairn("drain", "--node", "n")
    service = stage.status()["service_pid"]
    stage.down()
    assert eventually(lambda: not os.path.exists(f"/proc/{service}")), "the service is still there"


def killed_readers_leave_nothing():
    with Stage() as stage:
        path = stage.make("read", 48)
        words = stage.reading(path, range(48 * MIB // BLOCK), compute_us=4000)
        for _ in range(4):
            before = stage.fetched()["used_bytes"]
            readers = [stage.start(*words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(2)]
            assert eventually(lambda: stage.fetched()["used_bytes"] > before + MIB), stage.status()["fetches"]
            for reader in readers:
                kill_program_of(reader)
            stage.cairn("stage-out", "--node", "n", path)
        nothing_is_left(stage, "read")


def killed_readers_among_writers():
    with Stage(ram=SMALL_RAM) as stage:
        path = stage.directory / "raced"
        until = stage.work / "until"
        racer.fill(path, SIZE, 0)
        writer = racing(stage, path, "change", SIZE, 5, 200)
        kills = 0
        try:
            while writer.poll() is None or kills < 3:
                before = stage.counter("read_bytes")
                readers = [racing(stage, path, "read", until) for _ in range(READERS)]
                assert eventually(lambda: stage.counter("read_bytes") > before + MIB), "nobody reads"
                for reader in readers:
                    kill_program_of(reader)
                kills += 1
                stage.cairn("stage-out", "--node", "n", path, check=False)
        finally:
            until.touch()
        is_as_left(stage, path, [end_of(writer)])
        nothing_is_left(stage, "raced")


def closed_files_are_closed_in_the_service():
    """Also when the program that read them does nothing else afterwards: it may live for days."""
    with Stage() as stage:
        puppet = stage.reader()
        path = stage.make("closed", 16)
        file = puppet.call("open", str(path), os.O_RDONLY)
        # Not as fast as can be: asking how far it is gives the service time to fetch something.
        for at in range(16 * MIB // BLOCK):
            puppet.call("pread", file, BLOCK, at * BLOCK)
            if at % 16 == 15 and stage.fetched()["used_bytes"] > 0:
                break
        assert stage.fetched()["used_bytes"] > 0, "the service has not opened it"
        puppet.call("close", file)
        assert eventually(lambda: not stage.open_in_service("/data/closed")), stage.open_in_service("/data/closed")
        assert puppet.end() == 0, puppet.errors


# A parent reads the file, and its child is the last to have it open and ends on command; the parent lives on.
LEAVE_TO_CHILD = """
import os, sys, time
path, leave, until = sys.argv[1:]
file = os.open(path, os.O_RDONLY)
for at in range(40):
    os.pread(file, 65536, at * 65536)
    time.sleep(0.002)
told, tells = os.pipe()
if os.fork() == 0:
    os.close(tells)
    os.fstat(file)
    os.read(told, 1)
    if leave == "close":
        os.close(file)
    os.kill(os.getpid(), 9)
os.close(file)
os.close(tells)
while not os.path.exists(until):
    time.sleep(0.01)
"""


def files_that_children_close_last_are_closed_in_the_service():
    with Stage() as stage:
        for leave in ("close", "kill"):
            path, until = stage.make(f"left-{leave}", 16), stage.work / f"until-{leave}"
            before = stage.fetched()["fetched_bytes"]
            parent = stage.start(sys.executable, "-c", LEAVE_TO_CHILD, path, leave, until, stderr=subprocess.PIPE)
            word = f"/data/left-{leave}"
            try:
                assert eventually(lambda: stage.fetched()["fetched_bytes"] > before), "the service has not opened it"
                assert eventually(lambda: not stage.open_in_service(word)), f"{leave}: {stage.open_in_service(word)}"
                assert parent.poll() is None, parent.communicate()
            finally:
                until.touch()
            assert parent.wait(LONG_SECONDS) == 0, parent.communicate()


SCENES = [writers_race_readers, writers_race_readers_in_little_ram, truncations_race_readers,
          truncations_race_readers_in_little_ram, replacements_race_readers,
          replacements_race_readers_in_little_ram, few_events_cost_no_data, some_events_cost_no_data,
          killed_readers_leave_nothing, killed_readers_among_writers,
          closed_files_are_closed_in_the_service, files_that_children_close_last_are_closed_in_the_service]
