# SPDX-License-Identifier: Apache-2.0
"""Scratch directories and files: nothing of them is stored, and nothing is left."""

import json
import os
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import under_cairn  # noqa: E402
from puppet import PATTERN_BYTES, holds, pattern, soon  # noqa: E402
from scene import CREATE, QUIET_SECONDS, Check, Node, stays_away  # noqa: E402


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
        check.puppet.call("link", str(check.path("a.tmp")), str(check.path("second name")))
        assert soon(lambda: holds(check.path("b.dat"), data))
        assert stays_away(check.path("a.tmp"), data), "scratch data reached the backing store"
        check.end()
        assert names_below(check.directory) == ["b.dat"], f"left behind: {names_below(check.directory)}"
        assert holds(check.path("b.dat"), data)
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
        under_cairn.kill_node(service)
        puppet.kill()
        node.cairn("up", "--name", "n", "--ram", "32M", "--tier", "none", "--buffer", node.directory, "--scratch",
                   "temporary")
        again = node.puppet()
        assert again.call("listdir", str(node.place)) == [], "the killed node's files are still there"
        assert again.end() == 0, again.errors


# ---- shares and reservations ------------------------------------------------------------------------------
