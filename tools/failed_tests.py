#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints what the failed tests of a ctest run said, from the run's log; of another log, its end.

    failed_tests.py LOG [--lines N]

It prints at most N lines of a test, the last ones. `./dev check` ends with this, so that the last lines of a check say
what is wrong.
"""

import argparse
import re
import sys
from pathlib import Path

# ctest -j writes a test's output as a whole, between the line of its result and the next line of ctest itself.
FAILED = re.compile(r"^\s*\d+/\d+ Test\s+#\d+: (\S+) \.*\s*\*\*\*(?!Skipped)(.*\S)\s*$")
OF_CTEST = re.compile(r"^\s*\d+/\d+ Test\s+#\d+: |^\s+Start\s+\d+: |^\d+% tests passed")


def outputs_of_failed(log):
    """Pairs of what ctest says of a failed test and the lines of that test."""
    outputs = []
    is_inside = False
    for line in log.splitlines():
        failed = FAILED.match(line)
        if failed:
            outputs.append((f"{failed[1]}: {failed[2]}", []))
            is_inside = True
        elif OF_CTEST.match(line):
            is_inside = False
        elif is_inside and line.strip():
            outputs[-1][1].append(line)
    return outputs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("log", type=Path)
    parser.add_argument("--lines", type=int, default=25)
    options = parser.parse_args()
    text = options.log.read_text(errors="replace")
    for title, lines in outputs_of_failed(text) or [("its end", text.splitlines())]:
        print(title, *(f"    {line}" for line in lines[-options.lines:]), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
