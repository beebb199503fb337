#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the workers beside it natively and under Cairn: they say what they found wrong, and end with 1 if they did."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import under_cairn  # noqa: E402

SCENES = [("map", "threads"), ("map", "fixed"), ("map", "remap"), ("map", "fork"), ("region", "tick")]


def main():
    if not under_cairn.have_cairn():
        print(f"skipped: {under_cairn.CAIRN} is not built")
        return under_cairn.SKIPPED
    failed = 0
    for worker, scene in SCENES:
        for kind in ("native", "cairn"):
            work = under_cairn.work_directory("races")
            command = [under_cairn.BUILD / f"tests/cairn_{worker}_worker", scene]
            if kind == "cairn":
                command = under_cairn.cairn_command(command, work)
            outcome = under_cairn.execute(command, work, timeout=60)
            good = outcome.status == 0 and not outcome.timed_out
            print(f"{'ok  ' if good else 'FAIL'} {scene}, {kind}")
            if good:
                under_cairn.remove(work)
            else:
                failed += 1
                print(outcome, outcome.output, outcome.errors, sep="\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
