#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts what of one step of `./dev check` passed, failed and was skipped, from the step's log.

    step_outcome.py LOG --step NAME --status STATUS     prints "PASSED FAILED SKIPPED"

A step that runs ctest counts by its tests; besides, each step counts once itself: passed, failed, or skipped when it
says so. It names skipped steps and tests on stderr. Skipping is for machines that lack something (a compiler, the right
to mount). The machines of the continuous integration, which set CI=true, lack nothing: there a skip that
tests/expected_skips.txt does not list counts as a failure.
"""

import argparse
import fnmatch
import os
import re
import sys
from pathlib import Path

EXPECTED = Path(__file__).resolve().parent.parent / "tests/expected_skips.txt"

# ctest, at its end: "The following tests did not run:", then lines like "12 - faults_signals (Skipped)".
CTEST_SKIPPED = re.compile(r"^\s*\d+ - (\S+) \(Skipped\)$", re.MULTILINE)
CTEST_SUMMARY = re.compile(r"(\d+) tests failed out of (\d+)$", re.MULTILINE)
# "skipped: why" speaks of the whole step, "skipped NAME: why" and "NAME: skipped: why" of a part of it.
STEP_SKIPPED = re.compile(r"^skipped: .+$", re.MULTILINE)
PART_SKIPPED = re.compile(r"^(?:skipped (\S+?)(?::.*)?|(\S+): skipped: .*)$", re.MULTILINE)


class Outcome:
    def __init__(self, passed, failed, skipped):
        self.passed, self.failed, self.skipped = passed, failed, skipped


def expected_skips(text):
    """Patterns of names, each of which must have a reason behind it."""
    patterns = []
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            pattern, _, reason = line.partition(" ")
            if not reason.strip():
                raise ValueError(f"expected_skips.txt: '{pattern}' has no reason")
            patterns.append(pattern)
    return patterns


def outcome_of(log, step, status):
    """The counts of one step, and the names of what it skipped."""
    skipped_tests = CTEST_SKIPPED.findall(log)
    parts = ["/".join((step, name or other)) for name, other in PART_SKIPPED.findall(log)]
    summaries = CTEST_SUMMARY.findall(log)
    tests_failed, tests = (int(number) for number in summaries[-1]) if summaries else (0, 0)
    outcome = Outcome(tests - tests_failed - len(skipped_tests), tests_failed, skipped_tests + parts)
    if status != 0:
        outcome.failed += 0 if tests_failed else 1
    elif STEP_SKIPPED.search(log):
        outcome.skipped.append(step)
    else:
        outcome.passed += 1
    return outcome


def refused(names, patterns):
    return [name for name in names if not any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("log", type=Path)
    parser.add_argument("--step", required=True)
    parser.add_argument("--status", type=int, required=True)
    options = parser.parse_args()
    outcome = outcome_of(options.log.read_text(errors="replace"), options.step, options.status)
    unexpected = []
    if os.environ.get("CI") == "true":
        unexpected = refused(outcome.skipped, expected_skips(EXPECTED.read_text()))
    for name in outcome.skipped:
        print(f"skipped: {name}" + (" (FAILED: not in tests/expected_skips.txt)" if name in unexpected else ""),
              file=sys.stderr)
    print(outcome.passed, outcome.failed + len(unexpected), len(outcome.skipped) - len(unexpected))
    return 0


if __name__ == "__main__":
    sys.exit(main())
