#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A node that starts on a tier with the log of one that died: what it tells of the replay, and what programs meet of a
file that the replay could not bring to its store.

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

    def cairn(self, *words, stdin=subprocess.DEVNULL):
        return subprocess.run([under_cairn.CAIRN, *words], cwd=self.store, env=self.environment, text=True,
                              stdin=stdin, capture_output=True, check=False)

    def run(self, script, stdin=subprocess.DEVNULL):
        return self.cairn("run", "--no-report", "--ram", "32M", "--tier", f"{self.tier}:64M:durable", "--", "sh", "-c",
                          script, stdin=stdin)


def mount(*words):
    return subprocess.run(["mount", *map(str, words)], capture_output=True, check=False).returncode == 0


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


OPENS = """
for open in 'cat owed' 'echo more >>owed' 'dd if=/dev/null of=owed' 'truncate -s 3 owed' '(ulimit -v 60000; cat owed)'
do eval "$open" 2>&1 | grep -q 'Input/output error' || echo "$open: no EIO"
done
cat <&0 2>&1 | grep -q 'Bad file descriptor' || echo "the inherited descriptor may be read"
"""


def owed_by_the_log():
    """The store is full, so a file stays torn: no program of the node may use it, and the run says so. What the log
    owes comes when the store has room."""
    machine = Machine("owed")
    if not mount("-t", "tmpfs", "-o", "size=1m", "tmpfs", machine.store):
        print("skipped: no right to mount")
        return
    try:
        (machine.store / "owed").touch()
        (machine.store / "filler").write_bytes(b"f" * (1020 << 10))
        machine.owe({"owed": "owed" * 25000})
        with (machine.store / "owed").open("r+b") as inherited:
            ran = machine.run(OPENS + "rm filler; " + OPENS + "echo other >other; cat other", inherited)
        assert (ran.returncode, ran.stdout) == (0, "other\n"), ran
        assert f"{machine.store}/owed: not recovered (No space left" in ran.stderr, ran.stderr
        assert f"`cairn recover {machine.tier}`" in ran.stderr, ran.stderr
        recovered = machine.cairn("recover", machine.tier)
        assert recovered.returncode == 0, recovered
        assert (machine.store / "owed").read_text() == "owed" * 25000
        assert machine.run("cat owed | wc -c").stdout == "100000\n"
    finally:
        subprocess.run(["umount", "-l", machine.store], check=False)
    under_cairn.remove(machine.work)


def main():
    if not under_cairn.have_cairn():
        return under_cairn.SKIPPED
    for scene in (told_at_start, owed_by_the_log):
        scene()
        print(f"{scene.__name__}: as promised", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
