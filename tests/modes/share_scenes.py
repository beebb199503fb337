# SPDX-License-Identifier: Apache-2.0
"""Reservations and shares of tiers: what runs that compete for room get of it."""

import os
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import under_cairn  # noqa: E402
from puppet import Puppet, pattern, soon  # noqa: E402
from scene import CREATE, Node  # noqa: E402


def flood(puppet, path, megabytes):
    piece = pattern(5, 1 << 20)
    file = puppet.call("open", str(path), CREATE)
    for step in range(megabytes):
        puppet.call("pwrite", file, piece, step << 20)
    puppet.call("close", file)


def reserved_data_stays_resident():
    with Node() as node:
        kept = node.puppet("--reserve", "12M")
        data = pattern(1, 1 << 20)
        file = kept.call("open", str(node.directory / "kept"), CREATE)
        for step in range(10):
            kept.call("pwrite", file, data, step << 20)
        other = node.puppet()
        flood(other, node.directory / "flood", 160)  # five times the RAM tier
        assert node.tiers_of("kept") == {"ram": 10 << 20}, node.tiers_of("kept")
        held = node.holding(kept.process)
        assert held["reserved_bytes"] == 12 << 20 and held["used_bytes"] >= 10 << 20, held
        before = node.status()["counters"]
        for step in range(10):
            assert kept.call("pread", file, 1 << 20, step << 20) == data
        after = node.status()["counters"]
        grown = {key: after[key] - before[key] for key in ("read_hit_bytes_ram", "read_miss_bytes")}
        assert grown == {"read_hit_bytes_ram": 10 << 20, "read_miss_bytes": 0}, grown
        said = node.cairn("status", "--node", "n")
        assert "12 MiB" in said and "reserved" in said, said
        assert kept.end() == 0 and other.end() == 0


def reserved_room_is_made_before_the_run():
    with Node(tier=None) as node:
        other = node.puppet()
        flood(other, node.directory / "flood", 64)
        late = node.puppet("--reserve", "16M")
        data = pattern(2, 1 << 20)
        file = late.call("open", str(node.directory / "late"), CREATE)
        for step in range(15):
            late.call("pwrite", file, data, step << 20)
        assert node.tiers_of("late") == {"ram": 15 << 20}, node.tiers_of("late")
        assert late.end() == 0 and other.end() == 0


def reservation_in_a_file_tier():
    with Node() as node:
        puppet = node.puppet("--reserve", "tier1=32M")
        puppet.call("exists", "/")
        assert node.holding(puppet.process, "tier1")["reserved_bytes"] == 32 << 20
        assert node.holding(puppet.process, "ram")["reserved_bytes"] == 0
        assert puppet.end() == 0, puppet.errors


def reservations_that_cannot_be_met():
    with Node() as node:
        def refused(size):
            return node.cairn("run", "--node", "n", "--reserve", size, "--", "true", status=2)
        said = refused("30M")
        assert "30 MiB of tier ram cannot be reserved, only 28 MiB can" in said, said
        holder = node.puppet("--reserve", "12M")
        holder.call("exists", "/")
        said = refused("20M")
        assert "only 16 MiB can" in said and f"12 MiB by run {holder.process.pid}" in said, said
        for mistake, words in (("tape=1M", ("tape", "ram, tier1")), ("much", ("not a size", "--reserve 2G")),
                               ("ram=", ("not a size",)), ("0", ("not a size",))):
            said = refused(mistake)
            assert all(word in said for word in words), f"{mistake}: {said}"
        assert holder.end() == 0, holder.errors
        node.cairn("run", "--no-report", "--node", "n", "--reserve", "20M", "--", "true")
        killed = node.puppet("--reserve", "20M")
        killed.call("exists", "/")
        assert node.holding(killed.process)["reserved_bytes"] == 20 << 20
        os.kill(killed.process.pid, 9)
        assert soon(lambda: node.holding(killed.process) is None), "its launcher is gone"
        node.cairn("run", "--no-report", "--node", "n", "--reserve", "28M", "--", "true")
        killed.process.communicate()
        said = node.cairn("run", "--ram", "16M", "--tier", "none", "--reserve", "20M", "--", "true", status=2)
        assert "only 14 MiB can" in said, f"on a node of its own: {said}"


def write_blocks(puppet, path, megabytes):
    file = puppet.call("open", str(path), CREATE)
    for step in range(megabytes):
        puppet.call("pwrite", file, pattern(step, 1 << 20), step << 20)
    puppet.call("close", file)


def reservation_of_files():
    """The files of a rule have their room, whichever run writes them, and other files do not get it."""
    with Node() as node:
        mine = node.directory / "mine"
        node.cairn("set", "--node", "n", f"{mine}/*", "reserve=8M")
        other = node.puppet()
        flood(other, node.directory / "flood", 96)  # three times the RAM tier
        writers = [node.puppet(), other]
        for index, writer in enumerate(writers):
            write_blocks(writer, mine / f"file{index}", 3)
        flood(other, node.directory / "flood-again", 96)
        for index in range(2):
            assert node.tiers_of(f"mine/file{index}") == {"ram": 3 << 20}, node.tiers_of(f"mine/file{index}")
        [held] = node.status()["reservations"]
        assert held["pattern"] == f"{mine}/*" and held["tier"] == "ram", held
        assert held["reserved_bytes"] == 8 << 20 and held["used_bytes"] >= 6 << 20, held
        said = node.cairn("status", "--node", "n")
        assert "room reserved for files (1)" in said and f"{mine}/*" in said, said
        said = node.cairn("explain", "--node", "n", mine / "file0")
        assert f"reserve 8M: rule {mine}/*" in said, said
        for writer in writers:
            assert writer.end() == 0, writer.errors


def reservation_of_files_makes_its_room():
    with Node() as node:
        mine = node.directory / "mine"
        other = node.puppet()
        flood(other, node.directory / "flood", 64)
        node.cairn("set", "--node", "n", f"{mine}/*", "reserve=ram:4M")
        write_blocks(other, mine / "late", 4)
        assert node.status()["reservations"][0]["used_bytes"] >= 4 << 20, node.status()["reservations"]
        flood(other, node.directory / "flood", 96)
        assert node.tiers_of("mine/late") == {"ram": 4 << 20}, node.tiers_of("mine/late")
        assert other.end() == 0, other.errors


def reservations_of_files_that_cannot_be_met():
    with Node() as node:
        name = f"{node.directory}/mine/*"

        def refused(size):
            return node.cairn("set", "--node", "n", name, f"reserve={size}", status=2)
        said = refused("30M")
        assert "30 MiB of tier ram cannot be reserved, only 28 MiB can" in said, said
        assert node.status()["reservations"] == [], "the rule is not taken"
        node.cairn("set", "--node", "n", name, "reserve=12M")
        said = node.cairn("run", "--node", "n", "--reserve", "20M", "--", "true", status=2)
        assert "only 16 MiB can" in said and f"12 MiB by the rule for {name}" in said, said
        refused("29M")
        assert node.status()["reservations"][0]["reserved_bytes"] == 12 << 20, "it is as before"
        for mistake, words in (("tape:1M", ("tape", "ram, tier1")), ("much", ("reserve=2G",))):
            said = refused(mistake)
            assert all(word in said for word in words), f"{mistake}: {said}"
        node.cairn("set", "--node", "n", name, "reserve=0")
        assert node.status()["reservations"] == []
        node.cairn("run", "--no-report", "--node", "n", "--reserve", "28M", "--", "true")


def reservations_of_a_schema_end_with_its_run():
    with Node() as node:
        schema = node.directory.parent / "reserve.yaml"
        schema.write_text("rules:\n  - {name: warm, path: \"warm*\", reserve: 6M}\n")
        run = node.puppet("--schema", schema)
        write_blocks(run, node.directory / "warm-1", 5)
        flood(run, node.directory / "flood", 96)
        assert node.tiers_of("warm-1") == {"ram": 5 << 20}, node.tiers_of("warm-1")
        [held] = node.status()["reservations"]
        assert held["run"] == str(run.process.pid) and held["pattern"] == "warm*", held
        assert held["used_bytes"] >= 5 << 20, held
        assert "rule warm" in node.cairn("explain", "--node", "n", node.directory / "warm-1")
        schema.write_text("rules:\n  - {path: \"cold*\", reserve: 2M}\n  - {path: \"warm*\", reserve: 60M}\n")
        said = node.cairn("run", "--node", "n", "--schema", schema, "--", "true", status=2)
        assert "60M" in said or "60 MiB" in said, said
        assert len(node.status()["reservations"]) == 1, "all rules of a run, or none"
        assert run.end() == 0, run.errors
        assert node.status()["reservations"] == []


def counts_survive_kills():
    """A client that is killed at work leaves what it stored to its run, and nothing of its stock."""
    program = "import os\nf = os.open('a', os.O_RDWR | os.O_CREAT)\nwhile True:\n" \
              "    for at in range(96): os.pwrite(f, bytes([7]) * 65536, at * 65536)\n" \
              "    os.ftruncate(f, 0)\n"
    with Node(tier=None) as node:
        words = [under_cairn.CAIRN, "run", "--no-report", "--node", "n", "--reserve", "8M", "--", "sh", "-c",
                 'while read x; do "$0" -c "$1"; done; exec sleep 60', sys.executable, program]
        run = Puppet(words, node.directory, node.environment)
        for kill in range(12):
            run.process.stdin.write("go\n")
            run.process.stdin.flush()

            def writers():
                return [client["pid"] for client in node.status()["clients"] if "python" in client["command"]]
            assert soon(writers), "nobody writes"
            time.sleep(0.03 * kill)
            os.kill(writers()[0], 9)
            assert soon(lambda: not writers())

        def in_order():
            status = node.status()
            return status["leased_slabs"] == 0 and status["locks_held_by_dead"] == 0
        assert soon(in_order), node.status()
        resident, used = node.tiers_of("a").get("ram", 0), node.holding(run.process)["used_bytes"]
        assert 0 <= used - resident <= 65536, f"{resident} resident and perhaps a torn block, {used} counted"
        run.kill()
        assert soon(lambda: not node.status()["runs"]), "the run ended"


READER = """
import os, random, sys
blocks = 1024
file = os.open(sys.argv[1], os.O_RDONLY)
while True:
    os.pread(file, 65536, random.randrange(blocks) * 65536)
"""


def weights_divide_the_tier():
    with Node(tier=None) as node:
        runs = {}
        for weight in (300, 100):
            path = node.directory / f"input-{weight}"
            path.write_bytes(b"x" * (64 << 20))  # twice the tier
            words = [under_cairn.CAIRN, "run", "--no-report", "--node", "n", "--weight", weight, "--",
                     sys.executable, "-c", READER, path]
            runs[weight] = Puppet(words, node.directory, node.environment)

        def used():
            return [held["used_bytes"] for held in
                    (node.holding(runs[weight].process) for weight in (300, 100)) if held]
        try:
            assert soon(lambda: len(used()) == 2 and sum(used()) > 26 << 20, 30), f"the tier is not used: {used()}"
            time.sleep(3)
            samples = []
            for _ in range(20):
                samples.append(used())
                time.sleep(0.1)
            heavy, light = (sum(column) for column in zip(*samples))
            assert 2.5 <= heavy / light <= 3.5, f"{heavy / light:.2f} instead of 3: {samples}"
            status = node.status()
            shares = {run["weight"]: run["tiers"][0]["share_bytes"] for run in status["runs"]}
            assert shares == {300: 24 << 20, 100: 8 << 20}, shares
            runs[100].kill()
            assert soon(lambda: used()[0] > 27 << 20, 20), f"alone it may use everything: {used()}"
        finally:
            for run in runs.values():
                run.kill()
