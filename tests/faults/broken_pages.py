#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A file tier gives back other bytes than it was given: somebody writes into its pool file.

    broken_pages.py [SCENE ...]

The test finds the pool file, which has no name, among the descriptors of the service (root, or the same user), and the
page that is to break by its content. Scenes: what the store has is read from there; what it has not yet is EIO for the
broken page alone, and named at the end; without checksums nobody notices.
"""

import argparse
import contextlib
import os
import re
import sys
import textwrap
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from scenes import (  # noqa: E402
    EXIT_NOT_STORED, ask, launch, messages, need, need_status, output, run_scenes, status_of, under_cairn, wait_until)

PAGE = 4096
PAGES = 256
BROKEN = 77


def page(number):
    return (f"page {number:6} ".encode() * PAGE)[:PAGE]


class Run:
    """A Python program under a node whose only tier is a file tier; it stops at each step() until the test goes on."""

    def __init__(self, work, program, options=()):
        self.work, self.store, self.tier = work, work / "store", work / "tier"
        self.store.mkdir()
        self.tier.mkdir()
        (self.store / "f").write_bytes(b"".join(page(number) for number in range(PAGES)))
        script = work / "program.py"
        script.write_text(textwrap.dedent(f"""\
            import errno, os, sys, time
            PAGE, PAGES = {PAGE}, {PAGES}
            def step(name):
                open({str(work)!r} + '/' + name, 'w').close()
                while not os.path.exists({str(work)!r} + '/' + name + '-on'): time.sleep(0.02)
            def page(number): return (f'page {{number:6}} '.encode() * PAGE)[:PAGE]
            def read(fd, number):
                try: return os.pread(fd, PAGE, number * PAGE) == page(number)
                except OSError as error: return errno.errorcode[error.errno]
            def read_all(fd): return ' '.join(f'{{n}}:{{read(fd, n)}}' for n in range(PAGES) if read(fd, n) is not True)
            """) + textwrap.dedent(program))
        command = under_cairn.cairn_command([sys.executable, script], self.store, ram="0", tiers=[f"{self.tier}:64M"],
                                            options=options)
        self.process = launch(command, work, self.store)

    def wait_for(self, name):
        wait_until(lambda: (self.work / name).exists() or self.process.poll() is not None, f"the program is at {name}")
        need((self.work / name).exists(), f"the program has ended: {self.messages()}")

    def go_on(self, name):
        (self.work / (name + "-on")).touch()

    def status(self):
        return status_of(f"run-{self.process.pid}")

    def break_page(self, number):
        """Wherever the pool file has the page, it has another one from here on."""
        pool = self.find_pool()
        content = pool.read_bytes()
        places = [match.start() for match in re.finditer(re.escape(page(number)), content)]
        places = [place for place in places if place % PAGE == 0]
        need(places, f"page {number} is not in the pool file")
        with open(pool, "r+b") as file:
            for place in places:
                file.seek(place)
                file.write(b"\xa5" * PAGE)

    def find_pool(self):
        descriptors = Path(f"/proc/{self.status()['service_pid']}/fd")
        found = [entry for entry in descriptors.iterdir() if os.readlink(entry).startswith(str(self.tier))]
        need(found, "the service has no pool file")
        return found[0]

    def end(self, expected):
        need_status(self.process, expected, self.work)

    def discard(self):
        """Data that is lost keeps the node."""
        ask("down", "--discard", "--node", f"run-{self.process.pid}")

    def output(self):
        return " ".join(output(self.work))

    def messages(self):
        return messages(self.work)


def broken_pages(status):
    return sum(tier["broken_pages"] for tier in status["tiers"])


READER = """
    fd = os.open('f', os.O_RDONLY)
    for number in range(PAGES): read(fd, number)
    step('read')
    print(read_all(fd) or 'as it was', flush=True)
    step('again')
    """


def scene_a_clean_page_breaks(work):
    """The program reads what the store has, and the status tells of the page."""
    run = Run(work, READER)
    run.wait_for("read")
    run.break_page(BROKEN)
    run.go_on("read")
    run.wait_for("again")
    need(broken_pages(run.status()) >= 1, "the status does not tell of the page")
    run.go_on("again")
    run.end(0)
    need(run.output() == "as it was", f"read: {run.output()[:300]}")


def scene_nobody_compares(work):
    """The same without checksums: the test would see a page that is not what it was."""
    run = Run(work, READER, options=["--checksums", "off"])
    run.wait_for("read")
    run.break_page(BROKEN)
    run.go_on("read")
    run.wait_for("again")
    run.go_on("again")
    run.end(0)
    need(run.output() == f"{BROKEN}:False", f"read: {run.output()[:300]}")


def scene_a_dirty_page_breaks(work):
    """The store never had it: EIO for this page alone, all others are stored, and the run ends with 74 and the name."""
    run = Run(work, """
        fd = os.open('g', os.O_RDWR | os.O_CREAT)
        for number in range(PAGES): os.pwrite(fd, page(number), number * PAGE)
        step('written')
        print(read_all(fd) or 'as it was', flush=True)
        """, options=["--trigger", "on-exit"])
    run.wait_for("written")
    run.break_page(BROKEN)
    run.go_on("written")
    run.end(EXIT_NOT_STORED)
    run.discard()
    need(run.output() == f"{BROKEN}:EIO", f"read: {run.output()[:300]}")
    need("/g" in run.messages(), f"the file is not named: {run.messages()}")
    stored = (run.store / "g").read_bytes()
    for number in range(PAGES):
        got = stored[number * PAGE:(number + 1) * PAGE]
        need(number == BROKEN or got == page(number), f"page {number} is not stored: {got[:20]}")
    need(stored[BROKEN * PAGE:(BROKEN + 1) * PAGE] != b"\xa5" * PAGE, "the broken page is in the store")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scenes", nargs="*")
    return run_scenes(globals(), parser.parse_args().scenes, contextlib.nullcontext)


if __name__ == "__main__":
    sys.exit(main())
