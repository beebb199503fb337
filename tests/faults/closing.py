#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Threads read, sync and duplicate a number that another thread closes and opens again as another file: each file keeps
its own bytes, in the buffer and in the store.

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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worker", required=True)
    parser.add_argument("--seconds", type=int, default=6)
    options = parser.parse_args()
    if not under_cairn.have_cairn():
        print(f"skipped: {under_cairn.CAIRN} is not built")
        return under_cairn.SKIPPED
    work = under_cairn.work_directory("closing")
    content = {letter: letter.encode() * FILE_BYTES for letter in "AB"}
    for letter, data in content.items():
        (work / letter).write_bytes(data)
    run_root = work / "run"
    run_root.mkdir(mode=0o700)
    environment = under_cairn.clean_environment({"CAIRN_RUN_ROOT": str(run_root)})
    worker = [str(Path(options.worker).resolve()), str(options.seconds), str(work)]
    run = subprocess.run(under_cairn.cairn_command(worker, work), cwd=work, env=environment, text=True,
                         capture_output=True, timeout=200)
    print(run.stdout, run.stderr, f"exit status {run.returncode}", sep="\n")
    problems = run.returncode != 0
    for letter, data in content.items():
        if (work / letter).read_bytes() != data:
            print(f"the store's {letter} has other bytes")
            problems = True
    if not problems:
        under_cairn.remove(work)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
