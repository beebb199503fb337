#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A file loses its name while another process is in the middle of opening it: what that process reads is what was
written, though none of it was stored and nobody else has the file open.

    open_unlink.py --slow-open LIBRARY
"""

import argparse
import sys
import textwrap
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import under_cairn  # noqa: E402

# Whether the reader has opened a file before (a forked child has not, and attaches with this one), and what the
# writer does meanwhile.
CASES = {
    "first open of a forked reader, unlink": ("forked", "unlink"),
    "later open of the reader, unlink": ("attached", "unlink"),
    "first open of a forked reader, unlink and the writer's close": ("forked", "close"),
    "later open of the reader, rename over it": ("attached", "rename"),
}

READER = """
import os, sys
open("other").read()
if sys.argv[2] == "forked" and (child := os.fork()) != 0:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
file = os.open(sys.argv[1], os.O_RDONLY)
data = b""
while piece := os.read(file, 1 << 20):
    data += piece
sys.stdout.buffer.write(data)
"""

WRITER = """
import os, subprocess, sys, time
slow_open, reader, kind, action = sys.argv[1:]
name = os.path.abspath("victim")
data = bytes(range(256)) * 3000
open("other", "w").write("x")
open("newer", "w").write("y")
file = os.open(name, os.O_CREAT | os.O_RDWR)
os.write(file, data)
if action != "close":
    os.close(file)
environment = dict(os.environ, SLOW_OPEN=name, LD_PRELOAD=os.environ.get("LD_PRELOAD", "") + ":" + slow_open)
child = subprocess.Popen([sys.executable, reader, name, kind], stdout=subprocess.PIPE, env=environment)
deadline = time.monotonic() + 10
while not os.path.exists(name + ".opened"):
    assert time.monotonic() < deadline, "the reader's open was not slowed down"
    time.sleep(0.01)
if action == "rename":
    os.rename("newer", name)
else:
    os.unlink(name)
if action == "close":
    os.close(file)
got, _ = child.communicate()
assert child.returncode == 0, child.returncode
assert got == data, f"{len(got)} bytes read, {len(data)} written; the same: {got == data}"
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--slow-open", required=True)
    options = parser.parse_args()
    if not under_cairn.have_cairn():
        print(f"skipped: {under_cairn.CAIRN} is not built")
        return under_cairn.SKIPPED
    work = under_cairn.work_directory("open-unlink")
    (work / "reader.py").write_text(textwrap.dedent(READER))
    (work / "writer.py").write_text(textwrap.dedent(WRITER))
    # Nothing is stored while the programs run.
    config = work / "cairn.yaml"
    config.write_text("flush:\n  delay_ms: 60000\n")
    slow_open = Path(options.slow_open).resolve()
    problems = []
    for number, (name, (kind, action)) in enumerate(CASES.items()):
        words = [sys.executable, work / "writer.py", slow_open, work / "reader.py", kind, action]
        for place, command in (("natively", words), ("under Cairn", None)):
            directory = work / f"{number}-{place.split()[-1]}"
            directory.mkdir()
            if command is None:
                command = under_cairn.cairn_command(words, directory, ram="64M", options=["--config", str(config)])
            outcome = under_cairn.execute(command, directory, 20)
            if outcome.status != 0 or outcome.timed_out:
                problems.append(f"{name}, {place}: {outcome}: {outcome.errors[-400:]}")
    if problems:
        print("\n".join(problems))
        return 1
    under_cairn.remove(work)
    print(f"{len(CASES)} cases read what was written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
