# SPDX-License-Identifier: Apache-2.0
"""`cairn trace replay --files`: what was recorded is done again on files, natively and under `cairn run`."""

import json
import random
import shutil
import sys

from stage import BLOCK, KIB, MIB, Stage, under_cairn
from trace_scenes import recorded

NO_PREFETCH = "prefetch:\n  budget: 0\n"
HEADING = "t,rank,file,op,off,len\n"
BLOCKS_READ = 240

READ_AND_WRITE = f"""
import os, sys
directory, blocks = sys.argv[1], {BLOCKS_READ}
old = os.open(directory + "/old", os.O_RDONLY)
new = os.open(directory + "/new", os.O_RDWR | os.O_CREAT, 0o644)
for at in range(blocks):
    os.pread(old, {BLOCK}, at * {BLOCK})
    if at % 8 == 0:
        os.pwrite(new, bytes(5000), at * 1000)
os.close(old)
os.close(new)
"""


def replay(stage, trace, *options, status=0):
    """Natively."""
    return stage.cairn("trace", "replay", "--files", stage.directory / "again", *options, trace, status=status)


def replay_buffered(stage, trace, *options, status=0):
    """As a program of the node; what it printed, when it is to succeed."""
    words = [under_cairn.CAIRN, "trace", "replay", "--files", stage.directory / "again", "--json", *options, trace]
    said = stage.run(*words, status=status)
    return said if status else json.loads(said)


def csv_trace(stage, lines, name="text.csv"):
    path = stage.work / name
    path.write_text(HEADING + "".join(",".join(map(str, line)) + "\n" for line in lines))
    return path


def a_recorded_run_is_done_again():
    """On another node, where nothing of it has been read before: what it reads is fetched ahead again."""
    with Stage(config=NO_PREFETCH) as first, Stage() as second:
        first.make("old", 16)
        path, _ = recorded(first, sys.executable, "-c", READ_AND_WRITE, first.directory)
        trace = second.work / "job.trace"
        shutil.copy(path, trace)
        assert "no such file" in replay(second, trace, "--reads", status=2), "nothing was made yet"
        made = json.loads(replay(second, trace, "--make", "--json"))
        assert made == {"files": 1, "made_bytes": BLOCKS_READ * BLOCK}, made
        played = replay_buffered(second, trace, "--verify", "--pace", "0.003")
        assert played["verified"] and played["read_bytes"] == BLOCKS_READ * BLOCK, played
        assert played["written_bytes"] == BLOCKS_READ // 8 * 5000 and played["opens"] == 2, played
        assert played["seconds"] >= played["accesses"] * 0.003 + played["io_seconds"], played
        fetched = second.fetched()
        assert fetched["used_bytes"] >= 0.8 * BLOCKS_READ * BLOCK, f"it is read like any program: {fetched}"
        second.cairn("drain", "--node", "n")
        new = next((second.directory / "again").rglob("new"))
        assert new.stat().st_size == (BLOCKS_READ - 8) * 1000 + 5000, new.stat()
        # The replay has written the bytes that --verify expects, so that both can be done again.
        again = replay_buffered(second, trace, "--verify")
        assert again["read_bytes"] == played["read_bytes"], again


def ranks_are_readers_of_their_own():
    """Each goes through its part of one file, in turns that have no order."""
    ranks, each = 8, 60
    left = [rank for rank in range(ranks) for _ in range(each)]
    random.Random(7).shuffle(left)
    done = [0] * ranks
    lines = []
    for at, rank in enumerate(left):
        lines.append((at / 1000, rank, 0, 0, (rank * each + done[rank]) * BLOCK, BLOCK))
        done[rank] += 1
    with Stage() as stage:
        trace = csv_trace(stage, lines)
        replay(stage, trace, "--make")
        played = replay_buffered(stage, trace, "--verify", "--pace", "0.004")
        assert played["opens"] == ranks and played["accesses"] == ranks * each, played
        fetched = stage.fetched()
        assert fetched["used_bytes"] >= 0.7 * ranks * each * BLOCK, fetched
        assert fetched["used_bytes"] >= 0.8 * fetched["fetched_bytes"], fetched


def several_processes_share_the_ranks():
    lines = [(at / 100, at % 6, at % 3, at % 2, at * 3000, 5000) for at in range(300)]
    with Stage() as stage:
        trace = csv_trace(stage, lines)
        replay(stage, trace, "--make", "--processes", "4")
        said = replay(stage, trace, "--verify", "--processes", "6", "--first", "100")
        assert "100 accesses to 3 files" in said and "6 processes" in said, said
        for processes, used in ((4, 4), (100, 6)):
            played = replay_buffered(stage, trace, "--verify", "--processes", processes)
            assert played["processes"] == used and played["accesses"] == 300, played
            assert played["read_bytes"] == played["written_bytes"] == 150 * 5000, played


def the_pace_is_that_of_the_trace():
    lines = [(5 + at / 10, 0, 0, 0, at * 1000, 1000) for at in range(11)]
    with Stage() as stage:
        trace = csv_trace(stage, lines)
        replay(stage, trace, "--make")
        kept = json.loads(replay(stage, trace, "--json", "--pace", "keep"))
        assert 1 <= kept["seconds"] < 5, f"from the first access on: {kept}"
        assert json.loads(replay(stage, trace, "--json"))["seconds"] < 1
        slow = json.loads(replay(stage, trace, "--json", "--pace-mib", "50", "--call", "400"))
        assert slow["seconds"] >= 11_000 / MIB * 50 and slow["reads"] == 33, slow


DXT = """# darshan log version: 3.41
# DXT, file_id: 1, file_name: {name}
# DXT, rank: 0, hostname: here
# Module    Rank  Wt/Rd  Segment          Offset       Length    Start(s)      End(s)
 X_POSIX       0   read        0               0            4096      0.0100      0.0200
 X_POSIX       0  write        0            4096            4096      0.0300      0.0400
"""


def names_stay_below_the_directory():
    with Stage() as stage:
        outside = stage.work / "outside"
        outside.write_bytes(b"mine")
        for number, name in enumerate((str(outside), "../outside", "../../../../outside", "a/../../outside")):
            trace = stage.work / f"{number}.txt"
            trace.write_text(DXT.format(name=name))
            directory = stage.work / f"played-{number}"
            options = ("--files", directory, trace)
            stage.cairn("trace", "replay", "--make", *options)
            stage.cairn("trace", "replay", "--verify", *options)
            found = [path for path in directory.rglob("*") if path.is_file()]
            assert [path.name for path in found] == ["outside"] and found[0].stat().st_size == 8192, f"{name}: {found}"
            assert ".." not in found[0].parts
        assert outside.read_bytes() == b"mine"
        # Nor does a link lead out.
        (stage.work / "links").mkdir()
        (stage.work / "links" / "_up").symlink_to(stage.work)
        for option in ("--make", "--overwrite"):
            words = ("trace", "replay", option, "--files", stage.work / "links", stage.work / "1.txt")
            said = stage.cairn(*words, status=2)
            assert "a link leads out" in said, said
        assert outside.read_bytes() == b"mine"


def what_cannot_be_played_is_said():
    with Stage() as stage:
        lines = [(at / 100, 0, 0, 0, at * KIB, KIB) for at in range(64)]
        trace = csv_trace(stage, lines)
        file = stage.directory / "again" / "file 0"
        replay(stage, trace, "--make")
        # A byte that is not what it should be.
        data = bytearray(file.read_bytes())
        data[12_345] ^= 1
        file.write_bytes(data)
        for play in (replay, replay_buffered):
            said = play(stage, trace, "--verify", status=2)
            assert str(file) in said and "12345" in said, said
        said = replay(stage, trace, "--verify", "--processes", "2", status=2)
        assert "12345" in said, said
        file.write_bytes(data[:1000])
        said = replay(stage, trace, status=2)
        assert "1000 bytes" in said and "65536" in said and "--make" in said, said
        # Files of others are not written to, but for when that is wanted.
        file.write_bytes(b"x" * (64 << 10))
        writes = csv_trace(stage, [(0, 0, 0, 1, 100, 100)], "writes.csv")
        for trace_of, option in ((trace, "--make"), (writes, "--reads"), (writes, "--json")):
            replay(stage, trace_of, option, status=2)
            assert file.read_bytes() == b"x" * (64 << 10), option
        replay(stage, writes, "--overwrite")
        assert file.read_bytes() != b"x" * (64 << 10)
        said = stage.cairn("trace", "replay", "--verify", trace, status=2)
        assert "--files" in said, said
        for wrong in (("--pace", "soon"), ("--pace", "-1"), ("--call", "0"), ("--first", "0"), ("--processes", "0"),
                      ("--expert", "lru"), ("--pace-mib", "-1")):
            said = replay(stage, trace, *wrong, status=2)
            assert wrong[0] in said, f"{wrong}: {said}"


def damaged_traces_are_not_played():
    with Stage() as stage:
        lines = [(at / 100, 0, 0, 0, at * KIB, KIB) for at in range(64)]
        text = csv_trace(stage, [*lines, ("soon", 0, 0, 0, 0, 5)], "damaged.csv")
        said = replay(stage, text, "--make", status=2)
        assert f"{text}:66" in said and "--first" in said, said
        assert not (stage.directory / "again").exists(), "nothing is done of what is damaged"
        replay(stage, text, "--make", "--first", "64")
        assert "64 accesses" in replay(stage, text, "--first", "64", "--verify")
        for play in (replay, replay_buffered):
            said = play(stage, text, "--verify", status=2)
            assert f"{text}:66" in said, said
            assert "missing" in play(stage, stage.work / "missing", status=2)
        empty = csv_trace(stage, [], "empty.csv")
        assert "nothing in it" in replay(stage, empty, status=2)


SCENES = [a_recorded_run_is_done_again, ranks_are_readers_of_their_own, several_processes_share_the_ranks,
          the_pace_is_that_of_the_trace, names_stay_below_the_directory, what_cannot_be_played_is_said,
          damaged_traces_are_not_played]
