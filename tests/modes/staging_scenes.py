# SPDX-License-Identifier: Apache-2.0
"""Staging in and out, pins, and the moves between tiers with their reasons."""

import json
import os

from puppet import holds, pattern, soon
from scene import CREATE, Node, write_file


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
