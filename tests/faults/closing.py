#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Threads use a number that becomes another file's meanwhile, handlers jump out of reads, and children are made while
threads duplicate: each file keeps its own bytes, in the buffer and in the store, and nobody keeps a closed file.

    closing.py --worker PROGRAM [--seconds N]
"""

import argparse
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import under_cairn  # noqa: E402

FILE_BYTES = 24 << 20


def run_case(worker, work, mode, seconds):
    """The problem, or None."""
    directory, run_root = work / mode, work / (mode + "-run")
    directory.mkdir()
    run_root.mkdir(mode=0o700)
    content = {letter: letter.encode() * FILE_BYTES for letter in "ABZ"}
    for letter, data in content.items():
        (directory / letter).write_bytes(data)
    environment = under_cairn.clean_environment({"CAIRN_RUN_ROOT": str(run_root)})
    command = under_cairn.cairn_command([worker, mode, str(seconds), str(directory)], directory)
    run = subprocess.run(command, cwd=directory, env=environment, text=True, capture_output=True, timeout=100)
    print(run.stdout.strip())
    if run.returncode != 0:
        return f"exit status {run.returncode}: {run.stderr}"
    for letter, data in content.items():
        if (mode != "switched" or letter == "Z") and (directory / letter).read_bytes() != data:
            return f"the store's {letter} has other bytes"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worker", required=True)
    parser.add_argument("--seconds", type=int, default=5)
    options = parser.parse_args()
    worker = Path(options.worker).resolve()
    return under_cairn.judge_cases("closing", ("closed", "switched", "third", "jumps", "forks", "reading"),
                                   lambda mode, work: run_case(worker, work, mode, options.seconds))


if __name__ == "__main__":
    sys.exit(main())
