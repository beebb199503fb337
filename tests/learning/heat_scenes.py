# SPDX-License-Identifier: Apache-2.0
"""`cairn heatmap`: which parts of a file are read most; and the maps that a node keeps of closed files."""

import json
import os
import sys
from pathlib import Path

from stage import BLOCK, MIB, READ_AGAIN_AND_END, Stage, eventually

HOT = range(64, 96)  # blocks
FILE_MIB = 16
# All of it once; then pieces of the hot part in random order. No more reads than the ring of a process has places for
# what it tells (memory/arena/event_ring.h): then nothing is lost, however late the node comes to read it.
READ = """
import os, random, sys
file = os.open(sys.argv[1], os.O_RDONLY)
for block in range(256):
    os.pread(file, 65536, block * 65536)
draw = random.Random(3)
for _ in range(int(sys.argv[2])):
    os.pread(file, 4096, draw.randrange(64, 96) * 65536)
os.close(file)
"""


def read_mostly_the_hot_part(stage, path, reads=1500):
    stage.run(sys.executable, "-c", READ, path, reads)


def touch(stage, path, leave="os.close(file)"):
    """A program that has the file open for a moment, and reads its beginning."""
    program = f"import os, sys\nfile = os.open(sys.argv[1], os.O_RDONLY)\nos.pread(file, 100, 0)\n{leave}\n"
    stage.run(sys.executable, "-c", program, path)


def map_of(stage, path):
    """The line about the file, and the scores by block; None when it was never read."""
    lines = [json.loads(line) for line in stage.cairn("heatmap", "--node", "n", "--json", path).splitlines()]
    if not lines:
        return None, {}
    head, *segments = lines
    assert head["name"] == str(path) and head["segment_bytes"] == BLOCK, head
    for segment in segments:
        assert segment["offset"] == segment["segment"] * BLOCK and segment["bytes"] == BLOCK, segment
    return head, {segment["segment"]: 2 ** segment["score_log2"] for segment in segments}


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def check_hot_part(scores):
    # A process that is put off the processor while it tells something may lose that.
    assert len(scores) > 0.9 * FILE_MIB * MIB // BLOCK, f"{len(scores)} blocks were read"
    hot, cold = mean(scores[block] for block in HOT), mean(scores[block] for block in scores if block not in HOT)
    assert hot > 2 * cold, f"{hot} where most was read, {cold} elsewhere"
    assert max(scores, key=scores.get) in HOT, max(scores, key=scores.get)


def hot_parts_are_seen():
    with Stage() as stage:
        path = stage.make("hot", FILE_MIB)
        read_mostly_the_hot_part(stage, path)
        head, scores = map_of(stage, path)
        assert head["file_bytes"] == FILE_MIB * MIB and head["epochs"] == 1, head
        check_hot_part(scores)
        text = stage.cairn("heatmap", "--node", "n", path)
        assert str(path) in text and "16 MiB in 256 segments of 64 KiB, epoch 1" in text, text
        hottest = next(line for line in text.splitlines() if line.strip().startswith("4 MiB |"))
        assert "█" in hottest.split("|")[1][:len(HOT)], text


READ_LATER = """
import os, sys, time
file = os.open(sys.argv[1], os.O_RDONLY)
os.pread(file, 100, 0)
time.sleep(1.5)
for block in range(64, 96):
    os.pread(file, 4096, block * 65536)
os.close(file)
"""


def hot_parts_come_back():
    """Of a file that is opened again and has left the tiers, what was hot is there before it is asked for."""
    for switch in ("on", "off"):
        with Stage(ram="16M", config=f"prefetch:\n  by_heat: {switch}\n") as stage:
            path = stage.make("hot", FILE_MIB)
            read_mostly_the_hot_part(stage, path)
            stage.cairn("stage-out", "--node", "n", path)
            before = stage.fetched("heat")["used_bytes"]
            stage.run(sys.executable, "-c", READ_LATER, path)
            fetched = stage.fetched("heat")
            came_back = fetched["used_bytes"] - before
            if switch == "on":
                assert came_back >= 0.8 * len(HOT) * BLOCK, f"{came_back}: {fetched}"
            else:
                assert fetched["fetched_bytes"] == 0, fetched


def maps_survive_a_close():
    with Stage() as stage:
        path = stage.make("hot", FILE_MIB)
        read_mostly_the_hot_part(stage, path)
        for epochs in (2, 3):
            touch(stage, path)
            head, scores = map_of(stage, path)
            assert head["epochs"] == epochs, head
            check_hot_part(scores)
        # While somebody has it open it is shown as well.
        puppet = stage.reader()
        file = puppet.call("open", str(path), os.O_RDONLY)
        assert eventually(lambda: map_of(stage, path)[0]["epochs"] == 4), map_of(stage, path)[0]
        puppet.call("close", file)
        assert puppet.end() == 0, puppet.errors


def never_read_is_said():
    with Stage() as stage:
        path = stage.make("idle", 1)
        assert "nobody has read it" in stage.cairn("heatmap", "--node", "n", path)
        assert map_of(stage, path) == (None, {})
        missing = stage.cairn("heatmap", "--node", "n", stage.directory / "missing", status=2)
        assert "missing" in missing and "No such file" in missing, missing


def writing_is_not_reading():
    with Stage() as stage:
        path = stage.make("written", 1)
        stage.run("dd", f"of={path}", "if=/dev/zero", "bs=64k", "count=4", "conv=notrunc", "status=none")
        assert not map_of(stage, path)[1], "nobody has read it"
        for epochs in (1, 2, 3):
            touch(stage, path)
            assert map_of(stage, path)[0]["epochs"] == epochs, f"{map_of(stage, path)[0]} after {epochs} programs"


def maps_of_evicted_files_are_shown():
    """Whether anything of a file is still in a tier has nothing to do with what was read of it."""
    with Stage() as stage:
        path = stage.make("gone", FILE_MIB)
        read_mostly_the_hot_part(stage, path)
        stage.cairn("stage-out", "--node", "n", path)
        assert stage.resident("gone") == []
        head, scores = map_of(stage, path)
        assert head is not None, "a file that was read is taken for one that was not"
        check_hot_part(scores)


def epochs_end_with_their_programs():
    """Whether they close what they have read or leave that to the kernel."""
    with Stage() as stage:
        path = stage.make("left", 1)
        for epochs in (1, 2, 3):
            touch(stage, path, leave="os._exit(0)")
            assert eventually(lambda: map_of(stage, path)[0]["epochs"] == epochs), \
                f"{map_of(stage, path)[0]} after {epochs} programs"


def epochs_of_killed_readers_end():
    with Stage() as stage:
        path = stage.make("killed", 1)
        puppet = stage.reader()
        file = puppet.call("open", str(path), os.O_RDONLY)
        puppet.call("pread", file, BLOCK, 0)
        [reader] = [client["pid"] for client in stage.status()["clients"] if "python" in client["command"]]
        os.kill(reader, 9)
        assert eventually(lambda: reader not in [client["pid"] for client in stage.status()["clients"]])
        puppet.kill()
        touch(stage, path)
        touch(stage, path)
        head, _ = map_of(stage, path)
        assert head["epochs"] == 3, f"the reader that was killed has it open for ever: epoch {head['epochs']}"


def what_was_told_last_is_of_the_same_epoch():
    with Stage() as stage:
        path = stage.make("read", 1)
        stage.run(sys.executable, "-c", READ_AGAIN_AND_END, path)
        assert eventually(lambda: not stage.status()["clients"])
        head, scores = map_of(stage, path)
        assert head["epochs"] == 1, f"{head['epochs']} epochs of one program that had it open once"
        assert len(scores) > 12, scores
        touch(stage, path)
        assert map_of(stage, path)[0]["epochs"] == 2, map_of(stage, path)[0]


OPEN_MANY = "import os, sys\nfor name in sys.argv[2:]:\n    os.close(os.open(sys.argv[1] + name, os.O_RDONLY))\n"


def heat_directory(stage):
    return Path(stage.status()["directory"]) / "heat"


def damaged_maps_are_ignored():
    """A node has 256 maps in memory; whose file is opened after as many others is read back from its map."""
    with Stage() as stage:
        paths = {name: stage.make(name, FILE_MIB) for name in ("whole", "changed", "cut")}
        for path in paths.values():
            read_mostly_the_hot_part(stage, path)
        names = [f"small-{number}" for number in range(280)]
        for name in names:
            (stage.directory / name).write_bytes(b"x" * 100)
        stage.run(sys.executable, "-c", OPEN_MANY, f"{stage.directory}/", *names)
        assert map_of(stage, stage.directory / names[-1])[0]["epochs"] == 1, "all events have come"
        maps = {}
        for name, path in paths.items():
            [maps[name]] = heat_directory(stage).glob(f"*-{path.stat().st_ino:016x}-*.heat")
        data = bytearray(maps["changed"].read_bytes())
        data[len(data) // 2] ^= 1
        maps["changed"].write_bytes(data)
        maps["cut"].write_bytes(maps["cut"].read_bytes()[:1000])
        for path in paths.values():
            touch(stage, path)
        head, scores = map_of(stage, paths["whole"])
        assert head["epochs"] == 2, head
        check_hot_part(scores)
        for name in ("changed", "cut"):
            head, scores = map_of(stage, paths[name])
            assert head["epochs"] == 1 and set(scores) == {0}, f"{name}: {head}"
            assert str(maps[name]) in stage.log(), f"{name}: {stage.log()[-600:]}"
        assert str(maps["whole"]) not in stage.log()


def maps_end_with_the_node():
    with Stage() as stage:
        path = stage.make("read", FILE_MIB)
        read_mostly_the_hot_part(stage, path, 100)
        directory = heat_directory(stage)
        assert eventually(lambda: list(directory.glob("*.heat"))), "no map was kept when the file was closed"
        assert directory.stat().st_mode & 0o077 == 0, "names of files are nobody else's business"
        stage.down()
        assert not directory.exists(), list(directory.iterdir())


SCENES = [hot_parts_are_seen, hot_parts_come_back, maps_survive_a_close, never_read_is_said, writing_is_not_reading,
          maps_of_evicted_files_are_shown, epochs_end_with_their_programs, epochs_of_killed_readers_end,
          what_was_told_last_is_of_the_same_epoch, damaged_maps_are_ignored, maps_end_with_the_node]
