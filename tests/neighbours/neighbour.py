# SPDX-License-Identifier: Apache-2.0
"""What the suite's scenes share: a run root of their own, the service processes below it, waiting with a bound."""

import contextlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import under_cairn  # noqa: E402

CAIRN = str(under_cairn.CAIRN)


def check(holds, text):
    if not holds:
        raise AssertionError(text)


def wait_until(what, seconds, pause=0.005):
    """The first true answer of what(), or the last false one after `seconds`."""
    end = time.monotonic() + seconds
    while True:
        answer = what()
        if answer or time.monotonic() > end:
            return answer
        time.sleep(pause)


class Place:
    """A work directory with a run root in it, which only this scene uses; gone when the scene has passed."""

    def __init__(self, name):
        self.directory = under_cairn.work_directory(name)
        self.root = self.directory / "root"
        self.root.mkdir(mode=0o700)
        self.work = self.directory / "work"
        self.work.mkdir()
        self.environment = under_cairn.clean_environment({"CAIRN_RUN_ROOT": str(self.root)})

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        for process in self.services():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, 9)
        if kind is None:
            shutil.rmtree(self.directory, ignore_errors=True)

    def services(self):
        """The processes of nodes whose configuration lies below the run root."""
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                words = (entry / "cmdline").read_bytes()
                is_keeper = (entry / "comm").read_text() == "cairn-keeper\n"
                state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
            except (OSError, IndexError):
                continue
            is_of_node = b"node-service" in words and str(self.root).encode() in words
            if is_of_node and not is_keeper and state not in "ZX":
                found.append(int(entry.name))
        return found

    def processes(self):
        """All that use the run root, or were given the place: keepers, too, and what is yet to become a service."""
        words = str(self.directory).encode()
        found = []
        for entry in Path("/proc").iterdir():
            try:
                told = [(entry / file).read_bytes() for file in ("cmdline", "environ") if entry.name.isdigit()]
            except OSError:
                continue
            if any(words in each for each in told):
                found.append(int(entry.name))
        return found

    def cairn(self, *words, **options):
        options = {"cwd": self.work, "env": self.environment, "stdin": subprocess.DEVNULL,
                   "capture_output": True, "timeout": 60, **options}
        return subprocess.run([CAIRN, *words], **options)

    def start(self, *words, **options):
        options = {"cwd": self.work, "env": self.environment, "stdin": subprocess.DEVNULL,
                   "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **options}
        return subprocess.Popen([CAIRN, *words], **options)


def play(scenes):
    """Runs the scenes named on the command line, or all; the exit status says whether all passed."""
    if not under_cairn.have_cairn():
        print("no build of cairn")
        return under_cairn.SKIPPED
    failed = 0
    for scene in scenes:
        if len(sys.argv) > 1 and scene.__name__ not in sys.argv[1:]:
            continue
        began = time.monotonic()
        try:
            scene()
            outcome = "ok"
        except (AssertionError, subprocess.TimeoutExpired) as failure:
            outcome = f"FAILED: {failure}"
            failed += 1
        print(f"{scene.__name__}: {outcome} ({time.monotonic() - began:.1f} s)", flush=True)
    return 1 if failed else 0
