#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Children are started while other threads close files, and children end before the library is loaded in them: every
start succeeds, and nobody keeps a file that the program has closed and deleted.

    children.py --worker PROGRAM
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import under_cairn  # noqa: E402

CASES = {"spawn": 600, "system": 400, "fork": 1200, "lost": 60}


def unstored_bytes(environment):
    answer = subprocess.run([under_cairn.CAIRN, "status", "--json"], env=environment, capture_output=True, text=True,
                            check=True)
    return json.loads(answer.stdout)["backing"]["dirty_bytes"]


def make_broken_program(path):
    """A program for which the loader finds no C library."""
    data = Path("/bin/true").read_bytes()
    assert b"\0libc.so.6\0" in data
    path.write_bytes(data.replace(b"\0libc.so.6\0", b"\0libc.none\0"))
    path.chmod(0o755)
    return path


def run_case(worker, work, how, children):
    """The problem, or None."""
    directory, run_root = work / how, work / (how + "-run")
    directory.mkdir()
    run_root.mkdir(mode=0o700)
    # Nothing is stored meanwhile, so that what somebody keeps stays dirty.
    broken = make_broken_program(work / "broken")
    config = work / "cairn.yaml"
    config.write_text("flush:\n  delay_ms: 3600000\n")
    environment = under_cairn.clean_environment({"CAIRN_RUN_ROOT": str(run_root)})
    command = under_cairn.cairn_command([worker, how, children, broken], directory, options=["--config", str(config)])
    with subprocess.Popen(command, cwd=directory, env=environment, text=True, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        said = run.stdout.readline()
        deadline = time.monotonic() + 3
        kept = unstored_bytes(environment)
        while kept != 0 and time.monotonic() < deadline:
            time.sleep(0.05)
            kept = unstored_bytes(environment)
        _, errors = run.communicate("", timeout=60)
    lines = [line for line in errors.splitlines() if line.startswith("children_worker")]
    if said != "done\n" or run.returncode != 0:
        return f"exit status {run.returncode}: {len(lines)} failures: {lines[:3]}"
    return f"{kept} bytes of deleted files are kept" if kept != 0 else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worker", required=True)
    options = parser.parse_args()
    worker = Path(options.worker).resolve()
    return under_cairn.judge_cases("children", CASES, lambda how, work: run_case(worker, work, how, CASES[how]))


if __name__ == "__main__":
    sys.exit(main())
