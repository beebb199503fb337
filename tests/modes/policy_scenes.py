# SPDX-License-Identifier: Apache-2.0
"""Placement policies: which tier has the blocks of a file, and which files rise."""

import itertools
import json
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import under_cairn  # noqa: E402
from puppet import pattern, soon  # noqa: E402
from scene import Node, write_file  # noqa: E402


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


def report_names_each_tier():
    with Node("--policy", "round-robin", slower="64M") as node:
        report = node.work / "report.json"
        puppet = node.puppet("--report-json", report)
        write_file(puppet, node.directory / "a", 12)
        held = node.tiers_of("a")
        assert set(held) == {"ram", "tier1", "tier2"}, held
        file = puppet.call("open", str(node.directory / "a"), os.O_RDONLY)
        puppet.call("pread", file, 12 << 20, 0)
        assert puppet.end() == 0, puppet.errors
        hits = json.loads(report.read_text())["report"]["hit_bytes"]
        # The program reads a few bytes of other files.
        assert {tier: size >> 20 for tier, size in hits.items()} == {tier: size >> 20 for tier, size in held.items()}, \
            f"read {hits}, of what lay in {held}"


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


def small_new_files_start_in_memory():
    """While RAM is short, hot-data gives it to small files and to the beginning of large ones."""
    with Node("--policy", "hot-data", ram="16M") as node:
        puppet = node.puppet()
        write_file(puppet, node.directory / "fill", 9)
        # The plan is made anew a moment after the room has changed.
        def is_rationed(numbers=itertools.count()):
            probe = f"probe{next(numbers)}"
            write_file(puppet, node.directory / probe, 2)
            return node.tiers_of(probe).get("tier1", 0) == 1 << 20
        assert soon(is_rationed, 10), f"all of a large file in RAM: {node.tiers_of('probe0')}"
        write_file(puppet, node.directory / "small", 1)
        assert node.tiers_of("small") == {"ram": 1 << 20}, node.tiers_of("small")
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


def a_rules_tier_is_not_ranked():
    """If two files are read alike, the one that a rule has put into a slow tier stays there."""
    with Node("--policy", "hot-data", ram="0", tier="8M", slower="64M") as node:
        ruled, free = node.directory / "ruled", node.directory / "free"
        node.cairn("set", "--node", "n", f"{node.directory}/rul*", "tier=tier2")
        for path in (ruled, free):
            path.write_bytes(pattern(1, 1 << 20))
        node.cairn("stage-in", "--node", "n", ruled)
        node.cairn("stage-in", "--node", "n", "--tier", "tier2", free)
        puppet = node.puppet()
        opened = [puppet.call("open", str(path), os.O_RDONLY) for path in (ruled, free)]

        def tiers_of_both():
            for descriptor in opened:
                puppet.call("pread", descriptor, 1 << 20, 0)
            return [set(node.tiers_of(path.name)) for path in (ruled, free)]
        assert soon(lambda: tiers_of_both()[1] == {"tier1"}, 30), "what no rule speaks of rises"
        assert tiers_of_both()[0] == {"tier2"}, tiers_of_both()
        assert puppet.call("pread", opened[0], 1 << 20, 0) == pattern(1, 1 << 20)
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


def idle_time_is_for_measuring():
    with Node(ram="32M", variables={"CAIRN_PROFILE_IDLE_MS": "100"}) as node:
        kept = node.work / "state/cairn/profiles.json"

        def places():
            return [profile["directory"] for profile in json.loads(kept.read_text())["profiles"]] \
                if kept.exists() else []
        assert soon(lambda: "" in places(), 30), f"the memory was not measured: {places()}"
        assert soon(lambda: str(node.tier) in places(), 60), f"the tier was not measured: {places()}"


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
