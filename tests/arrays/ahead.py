#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packed datasets whose chunks the node unpacks before they are read, and selections with steps whose bytes it brings
in, and boxes of many rows: programs read what was written, and the node says how much it had ready."""

import json
import os
import sys
import time

import stage

sys.path.insert(0, str(stage.HERE.parent / "modes"))
from scene import Node  # noqa: E402

PROGRAMS = stage.HERE / "ahead_programs.py"
SECONDS = 240
# A dataset has 256; a machine without a processor to spare has few of them ready in time.
CHUNKS_MIN = 16


class Scene(Node):
    """A node with the file of ahead_programs.make()."""

    def __init__(self, python):
        self.python = python
        super().__init__(ram="256M", tier=None)
        made = stage.under_cairn.execute([python, PROGRAMS, "make"], self.directory, SECONDS)
        assert made.status == 0, made.errors
        time.sleep(0.1)

    def __exit__(self, kind, *rest):
        super().__exit__(kind, *rest)
        if kind is None:
            stage.under_cairn.remove(self.work)

    def run(self, program):
        line = [stage.under_cairn.CAIRN, "run", "--node", "n", "--", self.python, PROGRAMS, program]
        outcome = stage.under_cairn.execute(line, self.directory, SECONDS, self.environment)
        assert outcome.status == 0, outcome.errors

    def ahead(self, name="a.h5"):
        """{dataset: chunks that were unpacked ahead} of the file."""
        found = json.loads(self.cairn("arrays", "--node", "n", "--json", self.directory / name))
        return {one["name"].lstrip("/"): one["unpacked_ahead"] for one in found}


def chunks_are_there_before_they_are_read(scene):
    scene.run("read_all")
    ahead = scene.ahead()
    assert ahead.pop("lzf") == 0, ahead
    # Chunks that were never written are no work.
    assert 0 < ahead.pop("sparse") <= 128, ahead
    assert all(chunks >= CHUNKS_MIN for chunks in ahead.values()), ahead
    text = scene.cairn("arrays", "--node", "n", scene.directory / "a.h5", "--dataset", "/gzip")
    assert f"  ahead     {ahead['gzip']} chunks unpacked before they were read\n" in text, text
    in_all = json.loads(scene.cairn("status", "--node", "n", "--json"))["unpacked_ahead"]
    assert in_all >= sum(ahead.values()), (in_all, ahead)
    text = scene.cairn("status", "--node", "n")
    assert "unpacked before they were read: " in text, text


def rows_are_there_before_they_are_read(scene):
    scene.run("read_rows")
    assert scene.ahead()["gzip"] >= CHUNKS_MIN, scene.ahead()


def a_file_that_is_written_anew_reads_as_the_new_one(scene):
    scene.run("rewrite")
    assert scene.ahead()["gzip"] >= CHUNKS_MIN, scene.ahead()


def edges_without_filters_are_left_to_hdf5(scene):
    scene.run("unfiltered_edges")
    assert scene.ahead("b.h5") == {"x": 0}, scene.ahead("b.h5")


def steps_are_there_before_they_are_read(scene):
    scene.run("read_steps")
    fetches = json.loads(scene.cairn("status", "--node", "n", "--json"))["fetches"]
    advised = sum(one["fetched_bytes"] for one in fetches if one["predictor"] == "advised")
    assert advised > 0, fetches


def a_slab_is_read_once_in_large_pieces(scene):
    scene.run("read_columns")
    calls = [json.loads((scene.directory.parent / f"calls.{number}").read_text()) for number in range(4)]
    # 32 MiB in pieces of one. Without that each block is a call of somebody.
    assert sum(one[0] for one in calls) < 100, calls
    assert 30 << 20 < sum(one[1] for one in calls) < 36 << 20, calls


def a_slab_larger_than_memory_comes_once(scene):
    store = scene.work / "store"
    store.mkdir()
    (store / "data").write_bytes(os.urandom(1 << 20) * 32)
    command = stage.under_cairn.cairn_command([scene.python, PROGRAMS, "fetch_too_much"], store, ram="16M")
    outcome = stage.under_cairn.execute(command, store, SECONDS)
    assert outcome.status == 0, outcome.errors


SCENES = (chunks_are_there_before_they_are_read, rows_are_there_before_they_are_read,
          a_file_that_is_written_anew_reads_as_the_new_one, edges_without_filters_are_left_to_hdf5,
          steps_are_there_before_they_are_read, a_slab_is_read_once_in_large_pieces,
          a_slab_larger_than_memory_comes_once)


def main():
    stage.need_plugin()
    python = stage.interpreter()

    def play(scene):
        with Scene(python) as node:
            scene(node)

    return stage.play_scenes(SCENES, play)


if __name__ == "__main__":
    os.umask(0o077)
    sys.exit(main())
