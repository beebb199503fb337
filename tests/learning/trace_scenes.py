# SPDX-License-Identifier: Apache-2.0
"""`cairn trace record | make | info | misses | replay`: what programs do, put through policies."""

import json
import os
import re
import signal
import subprocess
import sys

from stage import BLOCK, LONG_SECONDS, MIB, READ_AGAIN_AND_END, Stage, eventually

NO_PREFETCH = "prefetch:\n  budget: 0\n"
BEST, CACHE = "best possible", "cache"


class Recording:
    """A recording on a node, until end()."""

    def __init__(self, stage, name="job.trace"):
        self.path = stage.work / name
        self.process = stage.begin("trace", "record", "--node", "n", self.path, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        assert eventually(lambda: self.path.exists() or self.process.poll() is not None)
        assert self.process.poll() is None, self.process.communicate()

    def end(self, number=signal.SIGINT):
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=LONG_SECONDS)
        assert self.process.returncode == 0, f"{self.process.returncode}: {err}"
        return out


def info(stage, path, status=0):
    """{what: (times, bytes as a text)}, and the first line."""
    said = stage.cairn("trace", "info", path, status=status)
    lines = re.findall(r"^(\w.*?) {2,}(\d+) {2,}(.*)$", said, re.MULTILINE)
    return {what: (int(times), size) for what, times, size in lines}, said


WORK = """
import os, sys
directory = sys.argv[1]
new = os.open(directory + "/new", os.O_RDWR | os.O_CREAT, 0o644)
for at in range(64):
    os.pwrite(new, bytes([at + 1]) * 65536, at * 65536)
os.close(new)
old = os.open(directory + "/old", os.O_RDONLY)
for at in range(128):
    os.pread(old, 65536, at * 65536)
os.close(old)
again = os.open(directory + "/old", os.O_RDONLY)
for _ in range(1000):
    os.pread(again, 65536, 0)
os.posix_fadvise(again, 0, 65536, os.POSIX_FADV_WILLNEED)
os.close(again)
"""


def recorded(stage, *words, name="job.trace"):
    """A recording of the program from which nothing is missing, and what was said of it.

    Who is put off the processor while it tells something may lose that; then the program is run once more."""
    for _ in range(5):
        recording = Recording(stage, name)
        stage.run(*words)
        said = recording.end()
        if "came too fast" not in said:
            return recording.path, said
        recording.path.unlink()
    raise AssertionError(f"each time something is lost: {said}")


def a_trace_has_what_was_done():
    with Stage(config=NO_PREFETCH) as stage:
        stage.make("old", 8)
        stage.run(sys.executable, "-c", "import os, sys; os.close(os.open(sys.argv[1], os.O_RDONLY))",
                  stage.directory / "old")  # before the recording
        path, said = recorded(stage, sys.executable, "-c", WORK, stage.directory)
        assert str(path) in said, said
        rows, text = info(stage, path)
        assert rows["opened"] == (3, "-") and rows["closed"] == (3, "-"), text
        assert rows["written"] == (64, "4 MiB"), text
        # The blocks read before are in RAM when the recording has to be repeated.
        first, hits = rows.get("read, missed", (0, "")), rows["read, hit"]
        assert first in ((128, "8 MiB"), (0, "")), text
        # A sample of the hits may be enough; the read of the written file is not the program's own.
        assert 5 <= hits[0] <= 1129, text
        assert rows["advised"][0] == 1, text
        assert "2 files" in text, text
        events = sum(times for times, _ in rows.values())
        assert f"{events} events" in said and f"{events} events" in text, f"{events}: {said}{text}"
        later = Recording(stage, "later.trace")
        later.end()
        assert info(stage, later.path)[0] == {}, "what was done before a recording is not in it"


def a_trace_ends_after_its_seconds():
    with Stage() as stage:
        path = stage.work / "short.trace"
        said = stage.cairn("trace", "record", "--node", "n", "--seconds", "0.2", path)
        assert f"{path}: 0 events" in said, said
        assert "0 events" in info(stage, path)[1]


def what_was_told_last_is_of_the_same_process():
    with Stage() as stage:
        file = stage.make("read", 1)
        path, _ = recorded(stage, sys.executable, "-c", READ_AGAIN_AND_END, file)
        text = info(stage, path)[1]
        assert "1 files, 1 process" in text, f"events of a program that has ended are taken for another's: {text}"


WRITE_ONLY = """
import os, sys
file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT, 0o644)
for at in range(16):
    os.pwrite(file, bytes(65536), at * 65536)
os.close(file)
"""


def write_only_opens_are_recorded():
    with Stage() as stage:
        path, _ = recorded(stage, sys.executable, "-c", WRITE_ONLY, stage.directory / "result")
        rows, text = info(stage, path)
        assert rows["written"] == (16, "1 MiB"), text
        assert rows.get("opened", (0,))[0] == rows.get("closed", (0,))[0] == 1, text
        assert not [what for what in rows if what.startswith("read")], f"nothing was read: {text}"


def record_a_loop(stage):
    path = stage.make("looped", 24)
    recording = Recording(stage)
    stage.read_in_order(path, [*range(24 * MIB // BLOCK)] * 3, compute_us=0)
    recording.end()
    return recording.path


def replay_compares_with_the_best():
    with Stage(config=NO_PREFETCH, ram="16M") as stage:
        trace = record_a_loop(stage)
        for options in ((), ("--page", "64K", "--expert", "lru", "--expert", "ws-plus", "--expert", "random")):
            said = stage.cairn("trace", "replay", *options, trace)
            head, *lines = said.splitlines()[1:]
            columns = [column.strip() for column in head.split("  ") if column.strip()]
            assert columns[:3] == [CACHE, "pages", BEST] and len(columns) >= 6, said
            rows = [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in lines]
            rows = [row for row in rows if len(row) == len(columns)]
            assert len(rows) == 5, said
            best_before = 100.0
            for row in rows:
                best, *others = map(float, row[2:])
                assert all(best <= other for other in others), f"better than the best: {said}"
                assert 0 < best <= best_before, f"more room and more misses: {said}"
                best_before = best


def misses_say_how_large_a_cache_must_be():
    with Stage(config=NO_PREFETCH, ram="16M") as stage:
        trace = record_a_loop(stage)
        found = json.loads(stage.cairn("trace", "misses", "--page", "64K", "--json", trace))
        assert found["page_bytes"] == 64 << 10 and found["sampled_share"] == 1, found
        # Of what hits, one in 64 is recorded at least: it counts as a whole file of 24 MiB that is read three times.
        assert 20 * MIB <= found["bytes"] <= 24 * MIB, found
        knee = found["knee"]
        assert knee["bytes"] > 16 * MIB, f"lru has hits in a loop that does not fit: {found}"
        lru, best = (found["curves"][name] for name in ("lru", BEST))
        assert [point["bytes"] for point in lru] == [point["bytes"] for point in best]
        assert all(one["miss_ratio"] <= other["miss_ratio"] for one, other in zip(best, lru, strict=True)), found
        assert abs(lru[-1]["miss_ratio"] - found["first_use_ratio"]) < 1e-6, found
        said = stage.cairn("trace", "misses", "--page", "64K", "--target", "60", trace)
        assert "lru misses at most 60 % from" in said and "the knee of lru is at" in said, said
        found = json.loads(stage.cairn("trace", "misses", "--page", "64K", "--target", "60", "--json", trace))
        assert found["target"]["miss_ratio"] == 0.6 and 0 < found["target"]["bytes"] <= 24 * MIB, found
        said = stage.cairn("trace", "misses", "--target", "1", trace)
        assert "no cache misses as little as 1 %" in said, said


def models_of_traffic_are_what_their_policies_suit():
    """As in "Performance Models for a Two-tiered Storage System", section 6.1: 64 pages, lru for one, lfu for one."""
    with Stage(config=NO_PREFETCH, ram="16M") as stage:
        made = {}
        for model, options in (("poisson", ("--lifetime", "10")), ("irm", ("--writes", "25"))):
            trace = made[model] = stage.work / f"{model}.trace"
            said = stage.cairn("trace", "make", model, "--references", "40000", *options, trace)
            assert f"{trace}: 40000 references" in said, said
            same = stage.work / f"{model}.again"
            stage.cairn("trace", "make", model, "--references", "40000", *options, same)
            assert trace.read_bytes() == same.read_bytes(), f"{model}: a seed makes one trace"
        found = info(stage, made["irm"])[0]
        assert found["read, missed"][0] + found["written"][0] == 40_000 and 9_000 < found["written"][0] < 11_000, found
        ratios = {}
        for model, trace in made.items():
            curves = json.loads(stage.cairn("trace", "misses", "--expert", "lfu", "--json", trace))["curves"]
            ratios[model] = {name: point["miss_ratio"] for name, curve in curves.items() for point in curve
                             if point["bytes"] == 32 * MIB}
        assert ratios["poisson"]["lru"] < ratios["poisson"]["lfu"], ratios
        assert ratios["irm"]["lfu"] < ratios["irm"]["lru"], ratios
        said = stage.cairn("trace", "make", "irm", "--pages", "10", "--lifetime", "100", stage.work / "short")
        assert "105 references" in said, f"each page has its share and expires: {said}"


def models_of_traffic_that_are_refused():
    with Stage(config=NO_PREFETCH, ram="16M") as stage:
        there = stage.work / "there"
        there.write_text("mine")
        stage.cairn("trace", "make", "irm", there, status=2)
        assert there.read_text() == "mine"
        link = stage.work / "link"
        link.symlink_to(stage.work / "nobody")
        stage.cairn("trace", "make", "irm", link, status=2)
        assert not (stage.work / "nobody").exists(), "written through a link"
        for words in (("zeta",), ("irm", "--alpha", "nan"), ("irm", "--renew"), ("irm", "--pages", "0"),
                      ("poisson", "--lifetime", "0"), ("poisson", "--alpha", "1"), ("poisson", "--page", "2G"),
                      ("poisson", "--repeats", "1e6", "--lifetime", "1e6"), ("poisson", "--writes", "101")):
            said = stage.cairn("trace", "make", *words, stage.work / "new", status=2)
            assert words[-2 if len(words) > 2 else -1] in said, f"{words}: {said}"
            assert not (stage.work / "new").exists(), words


def what_is_no_trace_is_refused():
    with Stage(config=NO_PREFETCH, ram="16M") as stage:
        trace = record_a_loop(stage)
        data = trace.read_bytes()
        wrong = {"directory": None, "empty": b"", "text": b"this is not a trace\n" * 100, "short": data[:20],
                 "changed": data[:len(data) // 2] + bytes([data[len(data) // 2] ^ 1]) + data[len(data) // 2 + 1:]}
        for name, content in wrong.items():
            path = stage.work / name
            if content is None:
                path.mkdir()
            else:
                path.write_bytes(content)
            for verb in ("info", "misses", "replay"):
                said = stage.cairn("trace", verb, path, status=2)
                assert str(path) in said, f"{verb} {name}: {said}"
                assert "experts" not in said, f"{verb} {name}: they are not what is wrong: {said}"
        # A trace that was cut off is read up to there, and the command says so.
        cut = stage.work / "cut"
        cut.write_bytes(data[:-10])
        for verb in ("info", "misses", "replay"):
            said = stage.cairn("trace", verb, cut)
            assert "cut off" in said and str(cut) in said, f"{verb}: {said}"
        assert "events" in info(stage, cut)[1]
        for verb in ("info", "misses", "replay"):
            assert "missing" in stage.cairn("trace", verb, stage.work / "missing", status=2)
        for verb in ("misses", "replay"):
            said = stage.cairn("trace", verb, "--expert", "clairvoyant", trace, status=2)
            assert "clairvoyant" in said and "ws-plus" in said and "lirs" in said, said
            said = stage.cairn("trace", verb, "--page", "much", trace, status=2)
            assert "--page" in said and "much" in said, said
        assert "--target" in stage.cairn("trace", "misses", "--target", "101", trace, status=2)


def recordings_that_are_refused():
    with Stage() as stage:
        for place in (stage.work / "missing" / "job.trace", stage.work / "run", "/dev/full"):
            said = stage.cairn("trace", "record", "--node", "n", "--seconds", "5", place, status=2)
            assert str(place) in said, said
        recording = Recording(stage)
        other = stage.work / "other.trace"
        said = stage.cairn("trace", "record", "--node", "n", "--seconds", "5", other, status=2)
        assert "already" in said and str(recording.path) in said, said
        assert not other.exists(), "it was made although it was refused"
        stage.run(sys.executable, "-c", WRITE_ONLY, stage.directory / "result")
        recording.end(signal.SIGTERM)
        rows, text = info(stage, recording.path)
        assert rows["written"] == (16, "1 MiB"), f"the first recording is as it was: {text}"
        Recording(stage, "next.trace").end()


def recordings_to_pipes_are_refused():
    """To open one is to wait for its reader, and what learns from programs would wait as well."""
    with Stage() as stage:
        pipe = stage.work / "pipe"
        os.mkfifo(pipe)
        with stage.begin("trace", "record", "--node", "n", "--seconds", "0.1", pipe, stdout=subprocess.DEVNULL,
                         stderr=subprocess.PIPE) as recorder:
            ended = eventually(lambda: recorder.poll() is not None)
            if not ended:
                os.close(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK))  # so that the node can end
                recorder.kill()
            said = recorder.communicate(timeout=LONG_SECONDS)[1]
        assert ended, "the node waits for a reader of the pipe"
        assert recorder.returncode == 2 and str(pipe) in said, f"{recorder.returncode}: {said}"


def a_killed_recorder_ends_its_recording():
    """Nobody else could end it."""
    with Stage() as stage:
        recording = Recording(stage)
        stage.run(sys.executable, "-c", WRITE_ONLY, stage.directory / "result")
        os.kill(recording.process.pid, signal.SIGKILL)
        recording.process.communicate()

        def can_record():
            said = stage.cairn("trace", "record", "--node", "n", "--seconds", "0.01", stage.work / "next", check=False)
            return "already" not in said
        assert eventually(can_record), "the node records for ever, and no other recording can begin"


SCENES = [a_trace_has_what_was_done, what_was_told_last_is_of_the_same_process, a_trace_ends_after_its_seconds,
          write_only_opens_are_recorded, replay_compares_with_the_best,
          misses_say_how_large_a_cache_must_be, models_of_traffic_are_what_their_policies_suit,
          models_of_traffic_that_are_refused, what_is_no_trace_is_refused,
          recordings_that_are_refused, recordings_to_pipes_are_refused, a_killed_recorder_ends_its_recording]
