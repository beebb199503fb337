#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random selections of random datasets under `cairn run`, with writes in between, from tiers that are too small.

    selections.py                                        6,000, of fixed seeds
    selections.py --selections 60000 --seed 5            20,000 with each size of the tiers, from seed 5 on
    selections.py --selections 1000 --seed 7 --way 1     one program again, as a failure has told

A program (selection_programs.py) reads 1,000 selections of files that it makes itself.
"""

import argparse
import json
import sys
import time

import stage
import under_cairn

SECONDS = 300
SELECTIONS = 1000
# Name, RAM, and size of a file tier.
WAYS = [("a small RAM tier", "2M", None), ("a small RAM tier and a file tier", "2M", "16M"),
        ("a large RAM tier", "256M", None)]


def run(python, directory, seed, selections, way):
    """(outcome, bytes of chunks that were served); natively where there is no way."""
    command = [python, stage.HERE / "selection_programs.py", seed, selections]
    # The program's two libraries and its second process have the file open at the same time.
    environment = under_cairn.clean_environment({"PYTHONDONTWRITEBYTECODE": "1", "HDF5_USE_FILE_LOCKING": "FALSE"})
    if way is None:
        return under_cairn.execute(command, directory, SECONDS, environment), 0
    report = directory.parent / f"{directory.name}.json"
    tier = directory.parent / f"{directory.name}.tier"
    tiers = []
    if way[2]:
        tier.mkdir()
        tiers = [f"{tier}:{way[2]}"]
    line = under_cairn.cairn_command(command, directory, way[1], tiers, ["--report-json", str(report)])
    outcome = under_cairn.execute(line, directory, SECONDS, environment)
    served = json.loads(report.read_text())["report"]["array_bytes"] if report.exists() else 0
    report.unlink(missing_ok=True)
    under_cairn.remove(tier)
    return outcome, served


def play(python, seed, selections, number):
    """Bytes that were served; None for a failure."""
    began = time.monotonic()
    way = WAYS[number]
    directory = under_cairn.work_directory("selections")
    outcome, served = run(python, directory, seed, selections, way)
    is_passed = outcome.status == 0
    print(f"seed {seed}, {selections} selections, {way[0]}: {'ok' if is_passed else f'FAILED: {outcome}'}, "
          f"{served} bytes served ({time.monotonic() - began:.1f} s)", flush=True)
    if is_passed:
        under_cairn.remove(directory)
        return served
    natively = under_cairn.work_directory("selections")
    native, _ = run(python, natively, seed, selections, None)
    under_cairn.remove(natively)
    print(outcome.output[-2000:], outcome.errors[-10000:], f"natively: {native} {native.errors[-2000:]}",
          f"again: {sys.argv[0]} --seed {seed} --selections {selections} --way {number}", sep="\n", flush=True)
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--selections", type=int, default=6 * SELECTIONS)
    parser.add_argument("--way", type=int, choices=range(len(WAYS)))
    options = parser.parse_args()
    stage.need_plugin()
    python = stage.interpreter()
    served = []
    for begin in range(0, options.selections, SELECTIONS):
        number = begin // SELECTIONS
        way = number % len(WAYS) if options.way is None else options.way
        served.append(play(python, options.seed + number, min(SELECTIONS, options.selections - begin), way))
    if None in served:
        return 1
    if len(served) >= len(WAYS) and sum(served) == 0:
        print("nothing was served: this shows nothing")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
