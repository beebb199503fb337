#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A node that starts on a tier with the log of one that died: what it tells of the replay.

    replays.py
"""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import under_cairn  # noqa: E402


class Machine:
    """A store, and a durable tier whose log owes files bytes."""

    def __init__(self, name):
        self.work = under_cairn.work_directory("replays-" + name)
        self.store, self.tier = self.work / "store", self.work / "tier"
        self.store.mkdir()
        for private in (self.tier, self.work / "run"):
            private.mkdir(mode=0o700)
        self.environment = under_cairn.clean_environment({"CAIRN_RUN_ROOT": str(self.work / "run")})

    def owe(self, files):
        words = [word for name, text in files.items() for word in (self.store / name, "0", text)]
        subprocess.run([under_cairn.BUILD / "tests/durable_write_log", self.tier, *words], check=True)

    def cairn(self, *words):
        return subprocess.run([under_cairn.CAIRN, *words], cwd=self.store, env=self.environment, text=True,
                              capture_output=True, check=False)

    def run(self, script):
        return self.cairn("run", "--no-report", "--ram", "32M", "--tier", f"{self.tier}:64M:durable", "--", "sh", "-c",
                          script)


def told_at_start():
    """The run says how many files came back, and names each that is not simply at its place."""
    machine = Machine("told")
    names = ("plain", "changed", "line\ncairn: feed")
    for name in names:
        (machine.store / name).write_text("0123456789")
    machine.owe({name: "of the program" for name in names})
    for name in names[1:]:
        (machine.store / name).write_text("of somebody else")
    ran = machine.run("cat plain")
    assert (ran.returncode, ran.stdout) == (0, "of the program"), ran
    lines = ran.stderr.splitlines()
    assert len(lines) == 3 and all(line.startswith("cairn: ") for line in lines), ran.stderr
    assert f"recovered 42 B in 3 files from the durable tier in {machine.tier}" in ran.stderr, ran.stderr
    assert f"recovered as {machine.store}/changed.cairn-recovered" in ran.stderr, ran.stderr
    again = machine.run("cat plain")
    assert (again.returncode, again.stderr) == (0, ""), again
    under_cairn.remove(machine.work)


def main():
    if not under_cairn.have_cairn():
        return under_cairn.SKIPPED
    for scene in (told_at_start,):
        scene()
        print(f"{scene.__name__}: as promised", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
