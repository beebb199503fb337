#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Executes the examples of docs/semantics.md.

A fenced block with the words `sh test` holds commands after "$ " and below each what it prints on standard output;
"..." in an expected line matches anything, "[status N]" demands that exit status (else 0). Every block runs in a
fresh directory with `cairn` in the path.

    run.py              all blocks
    run.py Durability   those whose heading contains the word
    run.py --list
"""

import os
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import under_cairn  # noqa: E402

DOCUMENT = under_cairn.SOURCE / "docs/semantics.md"


class Step:
    def __init__(self, line, command):
        self.line, self.command, self.expected, self.status = line, command, [], 0


def blocks():
    """(heading, line, steps) of each executable block."""
    found, heading, steps, start = [], "", None, 0
    for number, line in enumerate(DOCUMENT.read_text().splitlines(), 1):
        if steps is None:
            if line.startswith("#"):
                heading = line.lstrip("# ")
            elif line.strip() == "```sh test":
                steps, start = [], number
        elif line.startswith("```"):
            found.append((heading, start, steps))
            steps = None
        elif line.startswith("$ "):
            steps.append(Step(number, line[2:]))
        elif match := re.fullmatch(r"\[status (\d+)\]", line):
            steps[-1].status = int(match.group(1))
        else:
            steps[-1].expected.append(line)
    return found


def matches(expected, actual):
    pattern = "\n".join(re.escape(line).replace(r"\.\.\.", ".*") for line in expected)
    return re.fullmatch(pattern, actual.rstrip("\n")) is not None


def run_block(steps, work):
    environment = under_cairn.clean_environment({
        "PATH": f"{under_cairn.CAIRN.parent}:{os.environ['PATH']}", "CAIRN_REPORT": "off"})
    for step in steps:
        outcome = under_cairn.execute(["bash", "-c", step.command], work, 60, environment)
        if outcome.timed_out or outcome.status != step.status:
            return f"line {step.line}: {outcome}, expected {step.status}: {step.command}\n{outcome.errors[-600:]}"
        if not matches(step.expected, outcome.output):
            wanted = "\n".join(step.expected)
            return f"line {step.line}: {step.command}\n  expected: {wanted!r}\n  printed:  {outcome.output!r}\n" \
                   f"{outcome.errors[-600:]}"
    return None


def main():
    if sys.argv[1:] == ["--list"]:
        for heading, line, steps in blocks():
            print(f"{line}: {heading} ({len(steps)} commands)")
        return 0
    if not under_cairn.have_cairn():
        print(f"skipped: {under_cairn.CAIRN} is not built")
        return under_cairn.SKIPPED
    failed = count = 0
    for heading, line, steps in blocks():
        if sys.argv[1:] and not any(word in heading for word in sys.argv[1:]):
            continue
        count += 1
        work = under_cairn.work_directory("semantics")
        problem = run_block(steps, work)
        if problem:
            failed += 1
            print(f"FAILED docs/semantics.md:{line} ({heading}), kept {work}\n  {problem}", flush=True)
        else:
            print(f"passed docs/semantics.md:{line} ({heading})", flush=True)
            under_cairn.remove(work)
    if not count:
        print("no such heading")
    return 1 if failed or not count else 0


if __name__ == "__main__":
    sys.exit(main())
