#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Buffering modes and flush triggers, rules and staging: what is on the backing store at each instant, seen from
outside the run after every call.

    run.py [triggers | rules | policies | files | scratch | shares]
"""

import itertools
import json
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import under_cairn  # noqa: E402
from puppet import PATTERN_BYTES, has_any_of, holds, pattern, soon  # noqa: E402
from scene import CREATE, Check, Node, stays_away, write_file  # noqa: E402
from scratch_scenes import (  # noqa: E402
    old_generations_end, scratch_by_pattern_goes_at_the_end, scratch_is_never_stored, scratch_of_a_killed_node_goes,
    scratch_of_a_node_is_shared, scratch_overflows_to_the_store)
from share_scenes import (  # noqa: E402
    counts_survive_kills, reservation_in_a_file_tier, reservation_of_files, reservation_of_files_makes_its_room,
    reservations_of_a_schema_end_with_its_run, reservations_of_files_that_cannot_be_met,
    reservations_that_cannot_be_met, reserved_data_stays_resident, reserved_room_is_made_before_the_run,
    weights_divide_the_tier)


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


def rules_for_parts():
    schema = """rules:
  - {name: head, path: "*.h5", offset: {end: 128K}, place: {tier: tier1, pin: true}}
  - {name: raw, path: "*.h5", offset: {begin: 256K, end: 320K}, never-buffer: true}
"""
    work = under_cairn.work_directory("modes-parts")
    (work / "rules.yaml").write_text(schema)
    (work / "cairn.yaml").write_text("flush:\n  delay_ms: 3600000\n")
    kib = 1 << 10
    with Node("--schema", work / "rules.yaml", "--config", work / "cairn.yaml") as node:
        def ranges():
            reply = json.loads(node.cairn("explain", "--node", "n", "--json", path))
            return [(part["begin"] // kib, part["end"] // kib, part["tier"]) for part in reply["ranges"]]
        path = node.directory / "a.h5"
        puppet = node.puppet()
        data = pattern(1, 512 * kib)
        file = puppet.call("open", str(path), CREATE)
        puppet.call("pwrite", file, data, 0)
        expected = [(0, 128, "tier1"), (128, 256, "ram"), (320, 512, "ram")]
        assert ranges() == expected, ranges()
        assert holds(path, data[256 * kib:320 * kib], 256 * kib), "a part that is never buffered is stored at once"
        assert not has_any_of(path, data[:128 * kib]) and not has_any_of(path, data[320 * kib:], 320 * kib)
        assert puppet.call("pread", file, 512 * kib, 0) == data
        assert ranges() == expected, f"a read moved it: {ranges()}"
        text = node.cairn("explain", "--node", "n", path)
        assert "bytes 0 to 131072: tier tier1: rule head" in text, text
        assert "bytes 262144 to 327680: mode bypass: rule raw" in text, text
        # More than the tiers have room for: what is pinned stays.
        other = puppet.call("open", str(node.directory / "other"), CREATE)
        for step in range(128):
            puppet.call("pwrite", other, data, step * 512 * kib)
            puppet.call("pwrite", other, data, (step + 128) * 512 * kib)
        assert ranges()[:1] == expected[:1], ranges()
        assert puppet.call("pread", file, 512 * kib, 0) == data
        assert puppet.end() == 0, puppet.errors
        assert holds(path, data), "not all of it is stored"
        for line in ("trigger: on-exit", "mode: scratch", "policy: hot-data"):
            (work / "wrong.yaml").write_text(f'rules:\n  - {{path: "*.h5", offset: {{end: 128K}}, {line}}}\n')
            said = node.cairn("schema", "check", work / "wrong.yaml", status=2)
            assert "holds for a whole file" in said, said
    under_cairn.remove(work)


def buffered_while_the_kernel_has_it():
    """One process has a file as the kernel's own, then another as a buffered one: both see each write."""
    with Node() as node:
        node.cairn("set", "--node", "n", "*.raw", "mode=bypass")
        first, second = node.puppet(), node.puppet()
        raw, plain = node.directory / "a.raw", node.directory / "a.dat"
        kernel = first.call("open", str(raw), CREATE)
        first.call("pwrite", kernel, pattern(1), 0)
        (node.directory / "nobody-opened.it").write_bytes(bytes(1000))
        for path, size in ((raw, PATTERN_BYTES), (node.directory / "nobody-opened.it", 1000)):
            assert json.loads(node.cairn("explain", "--node", "n", "--json", path))["size"] == size, path
        first.call("rename", str(raw), str(plain))
        buffered = second.call("open", str(plain), CREATE)
        assert second.call("pread", buffered, PATTERN_BYTES, 0) == pattern(1)
        for step in range(2, 5):
            second.call("pwrite", buffered, pattern(step), 0)
            assert first.call("pread", kernel, PATTERN_BYTES, 0) == pattern(step), "stale in the kernel's descriptor"
            first.call("pwrite", kernel, pattern(step + 10), 0)
            assert second.call("pread", buffered, PATTERN_BYTES, 0) == pattern(step + 10), "stale in the buffered one"
        assert not node.tiers_of("a.dat"), node.tiers_of("a.dat")
        assert first.end() == 0, first.errors

        def is_buffered():
            second.call("pwrite", buffered, pattern(20), 0)
            return node.tiers_of("a.dat")
        assert soon(is_buffered), "nobody bypasses it any more, and still not buffered"
        assert second.end() == 0, second.errors
        assert holds(plain, pattern(20))


def renamed_past_the_buffer(node, puppet):
    """A file that the puppet writes and has open as a buffered one, under a name that bypasses: descriptor and path."""
    node.cairn("set", "--node", "n", "*.raw", "mode=bypass")
    path, raw = node.directory / "a.dat", node.directory / "a.raw"
    buffered = puppet.call("open", str(path), CREATE)
    puppet.call("pwrite", buffered, pattern(1), 0)
    puppet.call("rename", str(path), str(raw))
    return buffered, raw


def cut_by_an_open_past_the_buffer():
    """open(O_RDONLY | O_TRUNC) by a rule past the buffer, of a file that the buffer still has to store."""
    with Node() as node:
        puppet = node.puppet()
        buffered, raw = renamed_past_the_buffer(node, puppet)
        puppet.call("close", buffered)
        cut = puppet.call("open", str(raw), os.O_RDONLY | os.O_TRUNC)
        assert puppet.call("size", cut) == 0, "as if it had not been cut"
        assert puppet.end() == 0, puppet.errors
        assert os.path.getsize(raw) == 0, "stored after it was cut"


def copy_within_what_is_buffered_under_one_name_only():
    """copy_file_range() within one file, of which one descriptor is buffered and the other the kernel's."""
    with Node() as node:
        puppet = node.puppet()
        buffered, raw = renamed_past_the_buffer(node, puppet)
        kernel = puppet.call("open", str(raw), os.O_RDWR)
        for source, target in ((kernel, buffered), (buffered, kernel)):
            try:
                done = puppet.call("copy", source, target, 65536, 4096, 8192)
            except AssertionError as refused:
                assert "Invalid argument" in str(refused), refused
            else:
                assert False, f"{done} bytes copied onto themselves"
            assert puppet.call("copy", source, target, 4096, 0, 100000) == 4096
        assert puppet.end() == 0, puppet.errors
        expected = bytearray(pattern(1))
        expected[100000:104096] = expected[:4096]
        assert holds(raw, bytes(expected))


def sendfile_to_what_is_not_buffered():
    with Node() as node:
        node.cairn("set", "--node", "n", "*.raw", "mode=bypass")
        puppet = node.puppet()
        source = puppet.call("open", str(node.directory / "a"), CREATE)
        puppet.call("pwrite", source, pattern(1), 0)
        target = puppet.call("open", str(node.directory / "b.raw"), CREATE)
        assert puppet.call("sendfile", target, source, 0, 5000) == 5000
        assert holds(node.directory / "b.raw", pattern(1)[:5000])
        appending = puppet.call("open", str(node.directory / "b.raw"), os.O_WRONLY | os.O_APPEND)
        answer = "nothing"
        try:
            puppet.call("sendfile", appending, source, 0, 5000)
        except AssertionError as refusal:
            answer = str(refusal)
        assert "Invalid argument" in answer, f"sendfile() to an appending file gives EINVAL, not {answer}"
        assert puppet.end() == 0, puppet.errors


# ---- placement policies -----------------------------------------------------------------------------------


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
        assert soon(is_rationed, 2), f"all of a large file in RAM: {node.tiers_of('probe0')}"
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


# ---- staging and pins -------------------------------------------------------------------------------------

def lists_of_many_names():
    """As many as a training set of files has."""
    with Node() as node:
        path = node.directory / ("name" * 50)
        path.write_bytes(pattern(1))
        (node.work / "list").write_text(f"{path}\n" * 40_000)
        said = node.cairn("stage-in", "--node", "n", "--from", node.work / "list")
        assert "staged in" in said, said
        assert node.tiers_of(path.name), "nothing of it is in RAM"


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


def room_is_made_before_the_next_burst():
    """A program that computes and writes in turns finds room in RAM, made before it needs it."""
    with Node() as node:
        def moved_ahead():
            return sum(move["bytes"] for move in node.status()["moves"] if move["reason"] == "room ahead")

        def compute_and_write(first, bursts):
            script = "for i in $(seq %d %d); do dd if=/dev/zero of=step$i bs=1M count=10; sleep 0.5; done"
            node.cairn("run", "--no-report", "--node", "n", "--", "sh", "-c",
                       script % (first, first + bursts - 1))
        compute_and_write(0, 2)
        assert moved_ahead() == 0, "there is room for another one"
        compute_and_write(2, 1)
        assert soon(lambda: moved_ahead() >= 4 << 20), node.status()["moves"]
        for step in range(3):
            assert node.cairn("run", "--no-report", "--node", "n", "--", "wc", "-c", f"step{step}").split()[0] == \
                str(10 << 20)


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
        # More than the tier has room for would fill it for good.
        large = [node.directory / f"large{number}" for number in range(2)]
        for path in large:
            path.write_bytes(bytes(20 << 20))
        node.cairn("pin", "--node", "n", "--tier", "ram", large[0])
        node.cairn("unpin", "--node", "n", large[0])
        said = node.cairn("pin", "--node", "n", "--tier", "ram", *large, status=2)
        assert "40 MiB cannot be pinned to tier ram: at most" in said and "nothing was changed" in said, said
        assert node.tiers_of("large1") == {}, "nothing was changed"


# ---- scratch ----------------------------------------------------------------------------------------------


PARTS = {
    "shares": [reserved_data_stays_resident, reserved_room_is_made_before_the_run, reservation_in_a_file_tier,
               reservations_that_cannot_be_met, reservation_of_files, reservation_of_files_makes_its_room,
               reservations_of_files_that_cannot_be_met, reservations_of_a_schema_end_with_its_run,
               counts_survive_kills, weights_divide_the_tier],
    "scratch": [scratch_is_never_stored, scratch_overflows_to_the_store, scratch_by_pattern_goes_at_the_end,
                old_generations_end, scratch_of_a_node_is_shared, scratch_of_a_killed_node_goes],
    "triggers": [persistent_sync, periodic, periodic_amount, per_operation, per_file, on_exit, on_exit_fsync,
                 on_exit_without_room, bypass],
    "rules": [rules_by_path, rules_of_a_running_node, rules_of_one_run, rules_place_in_tiers, rules_for_parts,
              buffered_while_the_kernel_has_it, cut_by_an_open_past_the_buffer,
              copy_within_what_is_buffered_under_one_name_only, sendfile_to_what_is_not_buffered],
    "files": [stage_in_and_out, lists_of_many_names, moves_and_their_reasons, room_is_made_before_the_next_burst, pins],
    "policies": [default_policy_fills_the_fastest_first, round_robin_uses_all_tiers,
                 report_names_each_tier, locality_keeps_files_together,
                 small_new_files_start_in_memory, hot_files_rise, hot_files_rise_between_file_tiers,
                 a_rules_tier_is_not_ranked,
                 policies_by_path_and_run, policies_from_shared_objects, idle_time_is_for_measuring],
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
