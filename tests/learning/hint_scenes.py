# SPDX-License-Identifier: Apache-2.0
"""What programs and rules say of how a file will be read: it is fetched, or nothing is."""

import os

from stage import BLOCK, MIB, Stage, eventually

SEQUENTIAL_READS = 64


def read_through(puppet, file, blocks=SEQUENTIAL_READS):
    for at in range(blocks):
        assert len(puppet.call("pread", file, BLOCK, at * BLOCK)) == BLOCK


def random_advice_silences():
    with Stage() as stage:
        puppet = stage.reader()
        for name, advice in (("random", os.POSIX_FADV_RANDOM), ("plain", os.POSIX_FADV_NORMAL)):
            file = puppet.call("open", str(stage.make(name, 16)), os.O_RDONLY)
            puppet.call("posix_fadvise", file, 0, 0, advice)
            before = stage.fetched()["fetched_bytes"]
            read_through(puppet, file)
            # The second shows that the first would have seen something.
            got = stage.fetched()["fetched_bytes"] - before
            assert (got == 0) == (name == "random"), f"{name}: {got} bytes fetched"
        assert puppet.end() == 0, puppet.errors


def advice_fetches_exactly(call):
    """Before any read, and nothing besides; what is touched in part is a whole block."""
    begin, end = 5 * MIB, 8 * MIB
    with Stage() as stage:
        path = stage.make("wanted", 16)
        puppet = stage.reader()
        file = puppet.call("open", str(path), os.O_RDONLY)
        puppet.call("pread", file, 1, 0)  # the file is known by now, and nothing but its first block is in RAM
        call(puppet, file, begin + 1, end - begin - 2)
        expected = [(0, BLOCK), (begin, end)]
        assert eventually(lambda: stage.resident("wanted") == expected), stage.resident("wanted")
        assert eventually(lambda: stage.fetched("advised")["fetched_bytes"] == end - begin), stage.status()["fetches"]
        missed = stage.counter("read_miss_bytes")
        for at in range(begin, end, BLOCK):
            puppet.call("pread", file, BLOCK, at)
        assert stage.counter("read_miss_bytes") == missed, "what was asked for was read again"
        assert stage.fetched("advised")["used_bytes"] == end - begin, stage.status()["fetches"]
        assert puppet.end() == 0, puppet.errors


def will_need_fetches_the_range():
    advice_fetches_exactly(lambda puppet, *where: puppet.call("posix_fadvise", *where, os.POSIX_FADV_WILLNEED))


def readahead_fetches_the_range():
    advice_fetches_exactly(lambda puppet, *where: puppet.call("readahead", *where))


def advice_before_any_read():
    """The very first thing that a program says of a file."""
    with Stage() as stage:
        path = stage.make("wanted", 16)
        puppet = stage.reader()
        file = puppet.call("open", str(path), os.O_RDONLY)
        puppet.call("posix_fadvise", file, 14 * MIB, 0, os.POSIX_FADV_WILLNEED)
        assert eventually(lambda: stage.resident("wanted") == [(14 * MIB, 16 * MIB)]), stage.resident("wanted")
        assert stage.counter("reads") == 0 and stage.counter("read_hits") == 0
        assert puppet.end() == 0, puppet.errors


def what_is_fetched_was_not_accessed():
    """The access time is the programs': what the node reads of its own accord leaves it."""
    long_ago, later = 1_000_000_000, 1_300_000_000
    with Stage() as stage:
        advised, staged = stage.make("advised", 1), stage.make("staged", 1)
        for path in (advised, staged):
            os.utime(path, (long_ago, later))
        read = stage.make("read", 1)
        os.utime(read, (long_ago, later))
        read.read_bytes()
        if os.stat(read).st_atime == long_ago:
            print("this mount keeps no access times: what would change one is not seen", flush=True)
        puppet = stage.reader()
        file = puppet.call("open", str(advised), os.O_RDONLY)
        puppet.call("posix_fadvise", file, 0, 0, os.POSIX_FADV_WILLNEED)
        stage.cairn("stage-in", "--node", "n", staged)
        for path in (advised, staged):
            assert eventually(lambda: stage.resident(path.name) == [(0, MIB)]), stage.resident(path.name)
            assert os.stat(path).st_atime == long_ago, f"{path.name} was last read at {os.stat(path).st_atime}"
        assert puppet.end() == 0, puppet.errors


RULES = """rules:
  - {name: silent, path: "*.none", prefetch: none}
  - {name: eager, path: "*.need", prefetch: will-need}
"""


def rule_none_silences():
    with Stage(schema=RULES) as stage:
        puppet = stage.reader()
        file = puppet.call("open", str(stage.make("a.none", 16)), os.O_RDONLY)
        read_through(puppet, file)
        puppet.call("posix_fadvise", file, 8 * MIB, MIB, os.POSIX_FADV_WILLNEED)
        read_through(puppet, puppet.call("open", str(stage.make("a.other", 16)), os.O_RDONLY))
        assert stage.resident("a.none") == [(0, SEQUENTIAL_READS * BLOCK)], stage.resident("a.none")
        assert stage.fetched()["fetched_bytes"] > 0, "without a rule nothing was fetched, either"
        assert puppet.end() == 0, puppet.errors


def rule_will_need_fetches_all():
    """At the open, whichever open of the program it is."""
    with Stage(schema=RULES) as stage:
        puppet = stage.reader()
        for number in range(3):
            name = f"{number}.need"
            puppet.call("open", str(stage.make(name, 8)), os.O_RDONLY)
            assert eventually(lambda: stage.resident(name) == [(0, 8 * MIB)]), f"{name}: {stage.resident(name)}"
        assert stage.counter("read_miss_bytes") == 0
        assert puppet.end() == 0, puppet.errors


SCENES = [random_advice_silences, will_need_fetches_the_range, readahead_fetches_the_range, advice_before_any_read,
          what_is_fetched_was_not_accessed,
          rule_none_silences, rule_will_need_fetches_all]
