#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Buffering modes and flush triggers, rules and staging: what is on the backing store at each instant, seen from
outside the run after every call.

    run.py [triggers | rules | policies | files | scratch]
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import under_cairn  # noqa: E402
from puppet import PATTERN_BYTES, Puppet, has_any_of, holds, pattern, puppet_words, soon  # noqa: E402

CREATE = os.O_RDWR | os.O_CREAT
# Longer than any background flush that is not meant to happen would take.
QUIET_SECONDS = 0.8


class Check:
    """One scene: a directory that is buffered, and a puppet in it."""

    def __init__(self, name, *options, config=""):
        self.work = under_cairn.work_directory("modes-" + name)
        self.directory = self.work / "data"
        self.directory.mkdir()
        self.prepare()
        if config:
            (self.work / "cairn.yaml").write_text(config)
            options = (*options, "--config", self.work / "cairn.yaml")
        self.puppet = Puppet(under_cairn.cairn_command(puppet_words(), self.directory, options=map(str, options)),
                             self.directory)
        self.ended = False

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.puppet.kill()
        if kind is None:
            under_cairn.remove(self.work)

    def prepare(self):
        """What is to be there before the run begins."""

    def path(self, name):
        return self.directory / name

    def open(self, name, flags=CREATE):
        return self.puppet.call("open", str(self.path(name)), flags)

    def end(self):
        status = self.puppet.end()
        assert status == 0, f"exit status {status}: {self.puppet.errors[-600:]}"


def stays_away(path, data, offset=0):
    time.sleep(QUIET_SECONDS)
    return not has_any_of(path, data, offset)


# ---- modes and triggers -----------------------------------------------------------------------------------

def persistent_sync():
    with Check("sync", "--mode", "persistent-sync") as check:
        file = check.open("a")
        for step in range(4):
            data = pattern(step)
            check.puppet.call("pwrite", file, data, step * PATTERN_BYTES)
            assert holds(check.path("a"), data, step * PATTERN_BYTES), f"write {step} returned before it was stored"
        small = pattern(9, 10)
        check.puppet.call("pwrite", file, small, 5)
        assert holds(check.path("a"), small, 5), "an overwrite returned before it was stored"
        assert check.puppet.call("pread", file, 10, 5) == small
        check.end()


def periodic():
    with Check("periodic", config="flush:\n  delay_ms: 300\n  trigger: periodic\n") as check:
        file = check.open("a")
        data = pattern(1)
        check.puppet.call("pwrite", file, data, 0)
        assert not holds(check.path("a"), data), "nothing was due yet"
        assert soon(lambda: holds(check.path("a"), data)), "not stored after the delay"
        check.end()


def periodic_amount():
    with Check("amount", config="flush:\n  delay_ms: 3600000\n  amount: 1M\n") as check:
        file = check.open("a")
        small = pattern(1)
        check.puppet.call("pwrite", file, small, 0)
        assert stays_away(check.path("a"), small), "less than the amount is not due"
        large = pattern(2, 1 << 20)
        check.puppet.call("pwrite", file, large, 0)
        assert soon(lambda: holds(check.path("a"), large)), "the amount is due whatever its age"
        check.end()


def per_operation():
    with Check("operation", "--trigger", "per-operation", config="flush:\n  delay_ms: 3600000\n") as check:
        file = check.open("a")
        for step in range(3):
            data = pattern(step)
            check.puppet.call("pwrite", file, data, step * PATTERN_BYTES)
            assert soon(lambda: holds(check.path("a"), data, step * PATTERN_BYTES), 2), f"write {step} not flushed"
        check.end()


def per_file():
    with Check("file", "--trigger", "per-file", config="flush:\n  delay_ms: 1\n") as check:
        file, other = check.open("a"), check.open("a")
        data = pattern(1)
        check.puppet.call("pwrite", file, data, 0)
        assert stays_away(check.path("a"), data), "flushed while it is open"
        check.puppet.call("close", other)
        assert stays_away(check.path("a"), data), "flushed although a writer has it open"
        check.puppet.call("close", file)
        assert soon(lambda: holds(check.path("a"), data)), "not flushed after the last close"
        check.end()


def on_exit():
    with Check("exit", "--trigger", "on-exit", config="flush:\n  delay_ms: 1\n") as check:
        file = check.open("a")
        data = pattern(1)
        check.puppet.call("pwrite", file, data, 0)
        check.puppet.call("close", file)
        assert stays_away(check.path("a"), data), "flushed before the end"
        assert check.path("a").stat().st_size == len(data), "its size is seen after the close all the same"
        check.end()
        assert holds(check.path("a"), data), "not stored when the run had ended"


def on_exit_fsync():
    with Check("exit-fsync", "--trigger", "on-exit") as check:
        file = check.open("a")
        data = pattern(1)
        check.puppet.call("pwrite", file, data, 0)
        check.puppet.call("fsync", file)
        assert holds(check.path("a"), data), "fsync() returned before it was stored"
        check.end()


def on_exit_without_room():
    with Check("exit-full", "--trigger", "on-exit", "--tier", "none") as check:
        file = check.open("a")
        piece = pattern(3, 1 << 20)
        for step in range(96):  # the RAM tier has 64 MiB
            check.puppet.call("pwrite", file, piece, step << 20)
        for step in range(0, 96, 7):
            assert check.puppet.call("pread", file, 1 << 20, step << 20) == piece, f"MiB {step} reads differently"
        check.end()
        for step in range(96):
            assert holds(check.path("a"), piece, step << 20), f"MiB {step} is not stored"


def bypass():
    with Check("bypass", "--mode", "bypass", config="flush:\n  delay_ms: 3600000\n") as check:
        file = check.open("a")
        data = pattern(1)
        check.puppet.call("pwrite", file, data, 0)
        assert holds(check.path("a"), data), "a bypassed file is written by the kernel at once"
        check.end()


# ---- rules ------------------------------------------------------------------------------------------------

def rules_by_path():
    schema = """<rules>
  <rule name="logs"><path>*.log</path><never-buffer>true</never-buffer></rule>
  <rule name="results"><path>out/*</path><mode>persistent-sync</mode></rule>
  <rule name="steps"><path>step-{n}.dat</path><trigger>on-exit</trigger></rule>
</rules>
"""
    work = under_cairn.work_directory("modes-schema")
    (work / "rules.xml").write_text(schema)
    with Check("rules", "--schema", work / "rules.xml", config="flush:\n  delay_ms: 1\n") as check:
        (check.directory / "out").mkdir()
        data = pattern(1)
        for name in ("a.log", "out/b"):
            check.puppet.call("pwrite", check.open(name), data, 0)
            assert holds(check.path(name), data), f"{name} is to be stored at once"
        check.puppet.call("pwrite", check.open("step-17.dat"), data, 0)
        check.puppet.call("pwrite", check.open("step-x.dat"), data, 0)
        assert soon(lambda: holds(check.path("step-x.dat"), data)), "no rule speaks of it"
        assert stays_away(check.path("step-17.dat"), data), "it is to wait for the end"
        check.end()
        assert holds(check.path("step-17.dat"), data)
    under_cairn.remove(work)


class Node:
    """A node of its own (`cairn up`), with commands to it."""

    def __init__(self, *options, ram="32M", tier="64M", slower=""):
        self.work = under_cairn.work_directory("modes-node")
        self.directory = self.work / "data"
        self.tier = self.work / "tier"
        self.directory.mkdir()
        self.tier.mkdir()
        self.place = self.directory / "temporary"
        self.place.mkdir()
        (self.directory / "mine").mkdir()
        self.environment = under_cairn.clean_environment({"CAIRN_RUN_ROOT": str(self.work / "run")})
        (self.work / "run").mkdir(mode=0o700)
        if slower:  # a second file tier
            (self.work / "slower").mkdir()
            options = ("--tier", f"{self.work / 'slower'}:{slower}", *options)
        self.cairn("up", "--name", "n", "--ram", ram, "--tier", f"{self.tier}:{tier}", "--buffer", self.directory,
                   *options)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.cairn("down", "--node", "n", "--discard", check=kind is None)
        if kind is None:
            under_cairn.remove(self.work)

    def cairn(self, *words, check=True, status=0):
        done = subprocess.run([str(under_cairn.CAIRN), *map(str, words)], cwd=self.directory, text=True,
                              env=self.environment, capture_output=True, timeout=120, stdin=subprocess.DEVNULL)
        if check and done.returncode != status:
            raise AssertionError(f"cairn {' '.join(map(str, words))}: {done.returncode}, not {status}: {done.stderr}")
        return done.stdout + done.stderr

    def puppet(self, *options):
        words = [under_cairn.CAIRN, "run", "--no-report", "--node", "n", *options, "--", *puppet_words()]
        return Puppet(words, self.directory, self.environment)

    def tiers_of(self, name):
        """Which tiers hold blocks of the file, with their bytes."""
        reply = json.loads(self.cairn("explain", "--node", "n", "--json", self.directory / name))
        tiers = {}
        for part in reply.get("ranges", []):
            tiers[part["tier"]] = tiers.get(part["tier"], 0) + part["end"] - part["begin"]
        return tiers


def rules_of_a_running_node():
    with Node() as node:
        puppet = node.puppet()
        before = puppet.call("open", str(node.directory / "x.bin"), CREATE)
        node.cairn("set", "--node", "n", "*.bin", "mode=persistent-sync")
        data = pattern(1)
        puppet.call("pwrite", before, data, 0)
        assert not holds(node.directory / "x.bin", data), "opened before the rule: nothing changes"
        after = puppet.call("open", str(node.directory / "y.bin"), CREATE)
        puppet.call("pwrite", after, data, 0)
        assert holds(node.directory / "y.bin", data), "opened after the rule"
        node.cairn("set", "--node", "n", node.directory / "y.bin", "mode=bypass")
        assert puppet.end() == 0, puppet.errors
        mistakes = (("mode=quick", "persistent-sync"), ("tier=tape", "tape"), ("policy=best", "max-bandwidth"),
                    ("mod=bypass", "mode"))
        for mistake, word in mistakes:
            said = node.cairn("set", "--node", "n", "*.bin", mistake, status=2)
            assert word in said, f"{mistake}: {said}"


def rules_of_one_run():
    with Node() as node:
        sync, plain = node.puppet("--mode", "persistent-sync"), node.puppet()
        data = pattern(1)
        for name, puppet in (("sync", sync), ("plain", plain)):
            puppet.call("pwrite", puppet.call("open", str(node.directory / name), CREATE), data, 0)
        assert holds(node.directory / "sync", data), "the run's own mode"
        assert not holds(node.directory / "plain", data), "another run's mode is not its"
        assert sync.end() == 0 and plain.end() == 0


def rules_place_in_tiers():
    with Node() as node:
        node.cairn("set", "--node", "n", "*.low", "tier=tier1")
        puppet = node.puppet()
        data = pattern(1)
        for name in ("a.low", "b.high"):
            puppet.call("pwrite", puppet.call("open", str(node.directory / name), CREATE), data, 0)
        assert set(node.tiers_of("a.low")) == {"tier1"}, node.tiers_of("a.low")
        assert set(node.tiers_of("b.high")) == {"ram"}, node.tiers_of("b.high")
        again = puppet.call("open", str(node.directory / "a.low"), os.O_RDWR)
        assert puppet.call("pread", again, len(data), 0) == data
        assert set(node.tiers_of("a.low")) == {"tier1"}, "a read does not move it out of its tier"
        assert puppet.end() == 0, puppet.errors
        assert holds(node.directory / "a.low", data)


# ---- placement policies -----------------------------------------------------------------------------------

def write_file(puppet, path, megabytes, seed=1):
    file = puppet.call("open", str(path), CREATE)
    for step in range(megabytes):
        puppet.call("pwrite", file, pattern(seed, 1 << 20), step << 20)
    puppet.call("close", file)


def default_policy_fills_the_fastest_first():
    with Node() as node:
        puppet = node.puppet()
        write_file(puppet, node.directory / "small", 8)
        assert node.tiers_of("small") == {"ram": 8 << 20}, node.tiers_of("small")
        write_file(puppet, node.directory / "large", 64)
        tiers = node.tiers_of("large")
        assert tiers.get("ram", 0) > 8 << 20 and tiers.get("tier1", 0) > 16 << 20, f"not in both: {tiers}"
        file = puppet.call("open", str(node.directory / "large"), os.O_RDONLY)
        for step in range(64):
            assert puppet.call("pread", file, 1 << 20, step << 20) == pattern(1, 1 << 20), f"MiB {step}"
        assert puppet.end() == 0, puppet.errors


def round_robin_uses_all_tiers():
    with Node("--policy", "round-robin") as node:
        puppet = node.puppet()
        write_file(puppet, node.directory / "a", 16)
        tiers = node.tiers_of("a")
        assert abs(tiers.get("ram", 0) - tiers.get("tier1", 0)) <= 4 << 20, tiers
        assert puppet.end() == 0, puppet.errors


def locality_keeps_files_together():
    with Node("--policy", "max-locality") as node:
        puppet = node.puppet()
        homes = []
        for number in range(12):
            write_file(puppet, node.directory / f"f{number}", 1, number)
            homes.append(node.tiers_of(f"f{number}"))
        assert all(len(tiers) == 1 for tiers in homes), f"a file in two tiers: {homes}"
        assert {"ram", "tier1"} == {tier for tiers in homes for tier in tiers}, f"not over both tiers: {homes}"
        for number in range(12):
            file = puppet.call("open", str(node.directory / f"f{number}"), os.O_RDONLY)
            assert puppet.call("pread", file, 1 << 20, 0) == pattern(number, 1 << 20)
            assert node.tiers_of(f"f{number}") == homes[number], "a read moved it"
        assert puppet.end() == 0, puppet.errors


def hot_files_rise():
    with Node("--policy", "hot-data", ram="8M") as node:
        files = [node.directory / f"f{number}" for number in range(12)]
        for number, path in enumerate(files):
            path.write_bytes(pattern(number, 1 << 20))
        node.cairn("stage-in", "--node", "n", "--tier", "tier1", *files)
        puppet = node.puppet()
        opened = [puppet.call("open", str(path), os.O_RDONLY) for path in files]
        puppet.call("pread", opened[10], 1 << 20, 0)

        # Nine files are read all the time, and RAM has room for eight.
        def in_ram():
            for number in range(9):
                puppet.call("pread", opened[number], 1 << 20, 0)
            return sum(node.tiers_of(path.name).get("ram", 0) for path in files[:9])
        assert soon(lambda: in_ram() >= 5 << 20, 20), f"read all the time, and {in_ram()} bytes of them in RAM"
        def home_of(name):
            in_ram()
            reply = json.loads(node.cairn("explain", "--node", "n", "--json", node.directory / name))
            return reply["handling"]["tier"]
        assert soon(lambda: home_of("f10") == "tier1", 20), "read once, and still at home in RAM"
        for number in range(12):
            assert puppet.call("pread", opened[number], 1 << 20, 0) == pattern(number, 1 << 20), number
        assert puppet.end() == 0, puppet.errors


def hot_files_rise_between_file_tiers():
    with Node("--policy", "hot-data", ram="0", tier="8M", slower="64M") as node:
        files = [node.directory / f"f{number}" for number in range(16)]
        for number, path in enumerate(files):
            path.write_bytes(pattern(number, 1 << 20))
        node.cairn("stage-in", "--node", "n", "--tier", "tier2", *files)
        puppet = node.puppet()
        opened = [puppet.call("open", str(path), os.O_RDONLY) for path in files]

        def risen():
            for number in range(3):
                puppet.call("pread", opened[number], 1 << 20, 0)
            return sum(node.tiers_of(path.name).get("tier1", 0) for path in files[:3])
        assert soon(lambda: risen() == 3 << 20, 30), f"{risen()} bytes of the files in use rose"
        assert all(set(node.tiers_of(path.name)) == {"tier2"} for path in files[4:]), "nobody uses them"
        moves = json.loads(node.cairn("status", "--node", "n", "--json"))["moves"]
        assert ("tier2", "tier1", "hot") in {(move["from"], move["to"], move["reason"]) for move in moves}, moves
        for number in range(16):
            assert puppet.call("pread", opened[number], 1 << 20, 0) == pattern(number, 1 << 20), number
        assert puppet.end() == 0, puppet.errors


def policies_by_path_and_run():
    with Node() as node:
        node.cairn("set", "--node", "n", "*.rr", "policy=round-robin")
        puppet, other = node.puppet(), node.puppet("--policy", "max-locality")
        write_file(puppet, node.directory / "a.rr", 8)
        write_file(puppet, node.directory / "b", 8)
        write_file(other, node.directory / "c", 8)
        assert len(node.tiers_of("a.rr")) == 2 and set(node.tiers_of("b")) == {"ram"}
        assert len(node.tiers_of("c")) == 1
        assert "round-robin" in node.cairn("explain", "--node", "n", node.directory / "a.rr")
        assert puppet.end() == 0 and other.end() == 0


def policies_from_shared_objects():
    plugin = under_cairn.BUILD / "lib/cairn/keep_fastest_free.so"
    assert plugin.exists(), f"{plugin} is not built"
    with Node("--policy", plugin) as node:
        puppet = node.puppet()
        write_file(puppet, node.directory / "a", 28)
        assert node.tiers_of("a").get("tier1", 0) > 0, f"the plugin leaves room in RAM: {node.tiers_of('a')}"
        assert puppet.end() == 0, puppet.errors
    with Node("--policy", "minimize-io-time") as node:
        puppet = node.puppet()
        write_file(puppet, node.directory / "a", 48)
        assert len(node.tiers_of("a")) == 2, node.tiers_of("a")
        assert puppet.end() == 0, puppet.errors
        said = node.cairn("set", "--node", "n", "*", "policy=/no/such/plugin.so", status=2)
        assert "/no/such/plugin.so" in said, said


# ---- staging and pins -------------------------------------------------------------------------------------

def stage_in_and_out():
    with Node() as node:
        inputs = node.directory / "inputs"
        inputs.mkdir()
        contents = {name: pattern(seed, 300_000) for seed, name in enumerate(("a", "b", "c"))}
        for name, data in contents.items():
            (inputs / name).write_bytes(data)
        said = node.cairn("stage-in", "--node", "n", inputs)
        assert "3 files" in said, said
        for name, data in contents.items():
            assert node.tiers_of(f"inputs/{name}") == {"ram": len(data)}, node.tiers_of(f"inputs/{name}")
        (node.work / "list").write_text(f"{inputs / 'a'}\n{inputs / 'b'}\n")
        node.cairn("stage-out", "--node", "n", "--from", node.work / "list")
        assert not node.tiers_of("inputs/a") and not node.tiers_of("inputs/b") and node.tiers_of("inputs/c")
        node.cairn("stage-in", "--node", "n", "--tier", "tier1", inputs / "a")
        assert set(node.tiers_of("inputs/a")) == {"tier1"}, node.tiers_of("inputs/a")
        node.cairn("stage-in", "--node", "n", "--tier", "tier1", inputs / "c")
        assert set(node.tiers_of("inputs/c")) == {"tier1"}, "what is resident elsewhere comes, too"
        puppet = node.puppet()
        file = puppet.call("open", str(inputs / "a"), os.O_RDWR)
        assert puppet.call("pread", file, 300_000, 0) == contents["a"]
        puppet.call("pwrite", file, b"new", 0)
        puppet.call("close", file)
        node.cairn("stage-out", "--node", "n", inputs / "a")
        assert holds(inputs / "a", b"new") and not node.tiers_of("inputs/a"), "stored, and out of the tiers"
        assert puppet.end() == 0, puppet.errors
        assert "missing" in node.cairn("stage-in", "--node", "n", inputs / "missing", status=2)


def moves_and_their_reasons():
    """Every way of a block in, between and out of the tiers is counted with its reason, and explained."""
    with Node() as node:
        inputs = node.directory / "inputs"
        inputs.write_bytes(pattern(1, 8 << 20))

        def moved(origin, target, reason):
            moves = json.loads(node.cairn("status", "--node", "n", "--json"))["moves"]
            return sum(move["bytes"] for move in moves
                       if (move["from"], move["to"], move["reason"]) == (origin, target, reason))

        def why(name, tier):
            reply = json.loads(node.cairn("explain", "--node", "n", "--json", node.directory / name))
            return {part["reason"] for part in reply["ranges"] if part["tier"] == tier}
        node.cairn("stage-in", "--node", "n", inputs)
        assert moved("backing store", "ram", "staged in") == 8 << 20
        assert why("inputs", "ram") == {"staged in"}, why("inputs", "ram")
        puppet = node.puppet()
        write_file(puppet, node.directory / "large", 40)  # more than RAM has, so that the oldest leave
        assert soon(lambda: moved("ram", "tier1", "room") > 0), "nothing was moved down"
        assert soon(lambda: why("inputs", "tier1") == {"oldest when the tier above ran short of room"})
        table = node.cairn("status", "--node", "n")
        assert "moves (" in table and "staged in" in table and "room" in table, table
        node.cairn("drain", "--node", "n")
        assert sum(moved(tier, "backing store", reason) for tier in ("ram", "tier1")
                   for reason in ("due", "drain", "room")) >= 40 << 20
        node.cairn("stage-out", "--node", "n", node.directory / "large")
        staged_out = moved("ram", "dropped", "staged out") + moved("tier1", "dropped", "staged out")
        assert staged_out > 24 << 20, staged_out
        file = puppet.call("open", str(inputs), os.O_RDONLY)
        puppet.call("pread", file, 8 << 20, 0)
        assert moved("tier1", "ram", "read again") > 0 and why("inputs", "ram") >= {"read again in a lower tier"}
        node.cairn("stage-out", "--node", "n", inputs)
        puppet.call("pread", file, 8 << 20, 0)
        assert moved("backing store", "ram", "read") + moved("backing store", "tier1", "read") == 8 << 20
        assert puppet.end() == 0, puppet.errors


def pins():
    with Node() as node:
        kept, other = pattern(1, 4 << 20), pattern(2, 1 << 20)
        (node.directory / "kept").write_bytes(kept)
        node.cairn("pin", "--node", "n", "--tier", "ram", node.directory / "kept")
        assert node.tiers_of("kept") == {"ram": len(kept)}, node.tiers_of("kept")
        puppet = node.puppet()
        file = puppet.call("open", str(node.directory / "other"), CREATE)
        for step in range(80):
            puppet.call("pwrite", file, other, step << 20)
        assert node.tiers_of("kept") == {"ram": len(kept)}, "pinned blocks stay whatever else needs room"
        node.cairn("unpin", "--node", "n", node.directory / "kept")
        for step in range(80, 160):
            puppet.call("pwrite", file, other, step << 20)
        assert soon(lambda: node.tiers_of("kept") != {"ram": len(kept)}), "unpinned blocks leave when they are oldest"
        assert puppet.end() == 0, puppet.errors


# ---- scratch ----------------------------------------------------------------------------------------------

def names_below(directory):
    return [name for _, folders, files in os.walk(directory) for name in folders + files]


class ScratchRun(Check):
    """A run with a scratch directory `temporary` in its buffered directory."""

    def __init__(self, name, *options, config=""):
        self.place = None
        super().__init__(name, "--scratch", "temporary", *options, config=config)

    def prepare(self):
        self.place = self.path("temporary")
        self.place.mkdir()

    def open(self, name, flags=CREATE):
        return super().open(f"temporary/{name}", flags)


def scratch_is_never_stored():
    with ScratchRun("scratch", "--tier", "none", config="flush:\n  delay_ms: 1\n") as check:
        data = pattern(1)
        check.puppet.call("mkdir", str(check.place / "sub"))
        for name in ("a", "sub/b"):
            file = check.open(name)
            check.puppet.call("pwrite", file, data, 0)
            check.puppet.call("fsync", file)
            check.puppet.call("close", file)
        check.puppet.call("rename", str(check.place / "a"), str(check.place / "c"))
        assert check.puppet.call("listdir", str(check.place)) == ["c", "sub"]
        time.sleep(QUIET_SECONDS)
        assert not names_below(check.place), f"seen from outside: {names_below(check.place)}"
        file = check.open("c", os.O_RDONLY)
        assert check.puppet.call("pread", file, len(data), 0) == data
        file = super(ScratchRun, check).open("kept")
        check.puppet.call("pwrite", file, data, 0)
        check.end()
        assert not names_below(check.place), "left behind"
        assert holds(check.path("kept"), data), "what lies beside it is stored"


def scratch_overflows_to_the_store():
    with ScratchRun("swap", "--tier", "none") as check:
        file = check.open("big")
        pieces = [pattern(seed, 1 << 20) for seed in range(7)]
        for step in range(160):  # the RAM tier has 64 MiB
            check.puppet.call("pwrite", file, pieces[step % 7], step << 20)
        for step in range(160):
            got = check.puppet.call("pread", file, 1 << 20, step << 20)
            assert got == pieces[step % 7], f"MiB {step} reads differently"
        assert not names_below(check.place), "the swap area has no name"
        check.end()
        assert not names_below(check.place)


def scratch_by_pattern_goes_at_the_end():
    work = under_cairn.work_directory("modes-scratch-rules")
    (work / "rules.xml").write_text('<rules><rule name="t"><path>*.tmp</path><mode>scratch</mode></rule></rules>\n')
    with Check("scratch-rule", "--schema", work / "rules.xml", config="flush:\n  delay_ms: 1\n") as check:
        data = pattern(1)
        for name in ("a.tmp", "b.dat"):
            check.puppet.call("pwrite", check.open(name), data, 0)
        assert soon(lambda: holds(check.path("b.dat"), data))
        assert stays_away(check.path("a.tmp"), data), "scratch data reached the backing store"
        check.end()
        assert not check.path("a.tmp").exists() and holds(check.path("b.dat"), data)
    under_cairn.remove(work)


def old_generations_end():
    work = under_cairn.work_directory("modes-generations")
    (work / "rules.xml").write_text('<rules><rule name="s"><path>step-{n}.h5</path><keep>2</keep></rule></rules>\n')
    with ScratchRun("generations", "--schema", work / "rules.xml") as check:
        for step in range(6):
            file = check.open(f"step-{step}.h5")
            check.puppet.call("pwrite", file, pattern(step), 0)
            check.puppet.call("close", file)
        check.open("other-1.h5")

        def left():
            return check.puppet.call("listdir", str(check.place))
        assert soon(lambda: left() == ["other-1.h5", "step-4.h5", "step-5.h5"]), left()
        file = check.open("step-5.h5", os.O_RDONLY)
        assert check.puppet.call("pread", file, PATTERN_BYTES, 0) == pattern(5)
        check.end()
    under_cairn.remove(work)


def scratch_of_a_node_is_shared():
    with Node("--scratch", "temporary") as node:
        data = pattern(1)
        first = node.puppet()
        file = first.call("open", str(node.place / "handed"), CREATE)
        first.call("pwrite", file, data, 0)
        assert first.end() == 0, first.errors
        second = node.puppet()
        file = second.call("open", str(node.place / "handed"), os.O_RDONLY)
        assert second.call("pread", file, len(data), 0) == data, "another run of the node sees it"
        assert second.end() == 0, second.errors
        assert not names_below(node.place)
        third = node.puppet("--scratch", str(node.directory / "mine"))
        file = third.call("open", str(node.directory / "mine/x"), CREATE)
        third.call("pwrite", file, data, 0)
        assert third.end() == 0, third.errors
        fourth = node.puppet("--scratch", str(node.directory / "mine"))
        assert fourth.call("listdir", str(node.directory / "mine")) == [], "a run's own scratch ends with it"
        assert fourth.end() == 0, fourth.errors


def scratch_of_a_killed_node_goes():
    with Node("--scratch", "temporary") as node:
        puppet = node.puppet()
        file = puppet.call("open", str(node.place / "a"), CREATE)
        puppet.call("pwrite", file, pattern(1), 0)
        service = json.loads(node.cairn("status", "--node", "n", "--json"))["service_pid"]
        os.kill(service, 9)
        puppet.kill()
        node.cairn("up", "--name", "n", "--ram", "32M", "--tier", "none", "--buffer", node.directory, "--scratch",
                   "temporary")
        again = node.puppet()
        assert again.call("listdir", str(node.place)) == [], "the killed node's files are still there"
        assert again.end() == 0, again.errors


PARTS = {
    "scratch": [scratch_is_never_stored, scratch_overflows_to_the_store, scratch_by_pattern_goes_at_the_end,
                old_generations_end, scratch_of_a_node_is_shared, scratch_of_a_killed_node_goes],
    "triggers": [persistent_sync, periodic, periodic_amount, per_operation, per_file, on_exit, on_exit_fsync,
                 on_exit_without_room, bypass],
    "rules": [rules_by_path, rules_of_a_running_node, rules_of_one_run, rules_place_in_tiers],
    "files": [stage_in_and_out, moves_and_their_reasons, pins],
    "policies": [default_policy_fills_the_fastest_first, round_robin_uses_all_tiers, locality_keeps_files_together,
                 hot_files_rise, hot_files_rise_between_file_tiers, policies_by_path_and_run,
                 policies_from_shared_objects],
}


def main():
    if not under_cairn.have_cairn():
        print(f"skipped: {under_cairn.CAIRN} is not built")
        return under_cairn.SKIPPED
    failed = 0
    for part in sys.argv[1:] or PARTS:
        for scene in PARTS[part]:
            try:
                scene()
                print(f"passed {scene.__name__}", flush=True)
            except AssertionError as problem:
                failed += 1
                print(f"FAILED {scene.__name__}: {problem}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
