#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random file operations natively and under Cairn; the first difference is reported.

    run.py --ops 10000 --seed 1 --seeds 4       four scripts of 10,000 operations each
    run.py --replay 3 --ops 10000               one script again, its work directory kept
    run.py --replay 3 --ops 10000 --shrink      and the shortest script that still differs
    run.py --script FILE                        a script kept from an earlier failure
    run.py --self                               native against native (the engine's own test)
    run.py --configurations all --ops 1000      a script for each mode, trigger and placement policy
    run.py --configurations mixed --replay 3    one of them again (configurations.py has the names)

Tiers are tiny by default (--ram 2M), so that blocks are evicted, flushed and read again all the time.
"""

import argparse
import os
import re
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import configurations  # noqa: E402
import under_cairn  # noqa: E402

EXPLICIT_BEFORE_NS = 1_500_000_000 * 10**9  # as worker.cc: earlier mtimes were set by the script
TIME = re.compile(r" m=\S+| BACKWARDS \(\d+ ns\)")


def engine_path():
    return Path(os.environ.get("CAIRN_DIFFERENTIAL", under_cairn.BUILD / "tests/cairn_differential"))


class Difference:
    def __init__(self, number, lines):
        self.number, self.lines = number, lines  # number of the operation, or None for the tree


class Run:
    """One execution of a script: its log without the directory's name, and the tree it left."""

    def __init__(self, log, tree, problem):
        self.tree, self.problem = tree, problem
        self.operations = [line for line in log if line.startswith("#")]
        self.notes = [line for line in log if line.startswith("!")]
        inodes = {int(line.split()[2]) for line in self.notes if line.startswith("! loose")}
        self.loose = {name for name, entry in tree.items() if entry.inode in inodes}
        self.notes = [line for line in self.notes if not line.startswith("! loose")]


def cairn_command(options, command, work, directory):
    configuration = options.configuration
    if configuration is None:
        return under_cairn.cairn_command(command, directory, options.ram, options.tier)
    tiers = options.tier or configurations.make_tiers(work)
    return under_cairn.cairn_command(command, directory, configuration.ram or options.ram, tiers,
                                     configuration.command_options(work, directory))


def execute(options, script, work, kind, fault=None):
    """Runs a script in work/<kind>/t; kind is native, again or cairn."""
    directory = work / kind / "t"
    under_cairn.remove(work / kind)
    directory.mkdir(parents=True)
    log = work / f"{kind}.log"
    command = [engine_path(), "--run", script, "--dir", directory, "--log", log]
    if fault is not None:
        command += ["--fault", fault]
    if kind == "cairn":
        command = cairn_command(options, command, work, directory)
    small = {"CAIRN_TEST_CAPACITIES": options.capacities} if options.capacities else {}
    outcome = under_cairn.execute(command, work, options.timeout, under_cairn.clean_environment(small))
    problem = None
    if outcome.timed_out or outcome.status != 0:
        problem = f"{kind}: {outcome}\n{outcome.errors[-2000:]}"
    text = log.read_text(errors="replace") if log.exists() else ""
    return Run(text.replace(str(directory), "DIR").splitlines(), under_cairn.read_tree(directory), problem)


def same_line(a, b, loose_times):
    if a == b:
        return True
    if loose_times:
        return TIME.sub("", a) == TIME.sub("", b)
    # The time of a file that is mapped shared and writable is the kernel's to choose.
    if " m=~" in a or " m=~" in b:
        return TIME.sub("", a) == TIME.sub("", b)
    return False


def compare(native, other, loose_times, gone=False):
    """`gone`: what is missing afterwards was scratch; what is there has to be right."""
    for a, b in zip(native.operations, other.operations):
        if not same_line(a, b, loose_times) or ("BACKWARDS" in b and not loose_times):
            return Difference(int(a.split()[0][1:]), [f"  native: {a}", f"  cairn:  {b}"])
    if other.problem or native.problem:
        number = int(other.operations[-1].split()[0][1:]) if other.operations else None
        return Difference(number, [native.problem or other.problem] + other.notes)
    if len(native.operations) != len(other.operations):
        return Difference(None, ["  logs of different length"])
    expected = native.tree
    if gone:
        expected = {name: entry for name, entry in native.tree.items() if name in other.tree}
    lines = under_cairn.compare_trees(expected, other.tree, 0 if loose_times else EXPLICIT_BEFORE_NS,
                                      native.loose | other.loose)
    if lines:
        return Difference(None, ["  what is stored afterwards differs:"] + ["  " + x for x in lines[:10]])
    return None


def judge(options, lines, work, fault=None):
    script = work / "script"
    script.write_text("\n".join(lines) + "\n")
    native = execute(options, script, work, "native")
    other = execute(options, script, work, "again" if options.self_test else "cairn", fault)
    gone = options.configuration is not None and options.configuration.gone
    return compare(native, other, options.loose_times, gone)


def operation_kind(line):
    return line.split()[3]


def shrink(options, lines, difference, work):
    """Delta debugging: cut after the difference, drop whole actors and kinds, then pieces."""
    deadline = time.monotonic() + options.shrink_seconds

    def still_differs(candidate):
        if time.monotonic() > deadline:
            return None
        return judge(options, candidate, work)

    if difference.number is not None:
        cut = [x for x in lines if int(x.split()[0]) <= difference.number]
        found = still_differs(cut)
        if found:
            lines, difference = cut, found
    for key in (lambda x: x.split()[1], lambda x: x.split()[2], operation_kind):
        for value in sorted({key(x) for x in lines}):
            candidate = [x for x in lines if key(x) != value]
            found = candidate and still_differs(candidate)
            if found:
                lines, difference = candidate, found
    pieces = 2
    while pieces <= len(lines) * 2 and len(lines) > 1 and time.monotonic() < deadline:
        step = max(1, len(lines) // pieces)
        smaller = False
        at = 0
        while at < len(lines):
            candidate = lines[:at] + lines[at + step:]
            found = candidate and still_differs(candidate)
            if found:
                lines, difference, smaller = candidate, found, True
            else:
                at += step
        if step == 1 and not smaller:
            break
        pieces = pieces if smaller else pieces * 2
    return lines, difference


def generate(options, seed):
    command = [engine_path(), "--generate", "--seed", seed, "--ops", options.ops]
    if options.classes:
        command += ["--classes", options.classes]
    if options.without:
        command += ["--without", options.without]
    return under_cairn.execute(command, under_cairn.SOURCE, 60).output.splitlines()


def check_seed(options, seed, lines):
    name = options.configuration.name if options.configuration else ""
    work = under_cairn.work_directory("-".join(filter(None, ("differential", name, str(seed)))))
    label = f"seed {seed}, {name}" if name else f"seed {seed}"
    began = time.monotonic()
    difference = judge(options, lines, work)
    if difference is None:
        print(f"{label}: {len(lines)} operations agree ({time.monotonic() - began:.1f} s)", flush=True)
        if not options.keep:
            under_cairn.remove(work)
        return True
    where = "the stored tree" if difference.number is None else f"operation {difference.number}"
    print(f"{label}: first difference at {where}")
    print("\n".join(difference.lines))
    if options.shrink:
        lines, difference = shrink(options, lines, difference, work)
        kept = work / "shrunk.script"
        kept.write_text("\n".join(lines) + "\n")
        print(f"shrunk to {len(lines)} operations: {kept}")
        print("\n".join("  " + x for x in lines[:40]))
        print("\n".join(difference.lines), flush=True)
    again = f" --configurations {name} --ram {options.ram}" if name else ""
    print(f"again: tests/differential/run.py --replay {seed} --ops {options.ops}{again} --shrink   (kept: {work})",
          flush=True)
    return False


def self_test(options):
    """The engine agrees with itself, and one byte changed behind its back is noticed."""
    work = under_cairn.work_directory("differential-self")
    lines = generate(options, options.seed)
    difference = judge(options, lines, work)
    if difference:
        print("native runs disagree:", *difference.lines, f"kept: {work}", sep="\n")
        return False
    print(f"two native runs agree on {len(lines)} operations")
    # A changed byte may be overwritten before anybody reads it, so the log gets three chances; the
    # tree of the end has to show one that is changed last.
    found = [judge(options, lines, work, fault=len(lines) * part // 4) for part in (1, 2, 3)]
    last = judge(options, lines, work, fault=len(lines) - 1)
    if last is None or not any(x and x.number is not None for x in found):
        print("an injected difference went unnoticed")
        return False
    print("injected differences were noticed")
    under_cairn.remove(work)
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--ops", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--replay", type=int)
    parser.add_argument("--script", type=Path)
    parser.add_argument("--ram", default="2M")
    parser.add_argument("--tier", action="append", default=[], metavar="DIR:SIZE")
    parser.add_argument("--configurations", metavar="NAMES",
                        help="modes, policies and mixes to run under, comma separated, or all; each has its own seeds")
    parser.add_argument("--capacities", metavar="TABLE=NUMBER,...", help="tables of a handful of records")
    parser.add_argument("--classes", help="only these classes, comma separated")
    parser.add_argument("--without", help="leave out these classes or kinds, comma separated")
    parser.add_argument("--timeout", type=float, default=300)
    parser.add_argument("--shrink", action="store_true")
    parser.add_argument("--shrink-seconds", type=float, default=300)
    parser.add_argument("--loose-times", action="store_true", help="do not compare modification times")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--self", dest="self_test", action="store_true")
    options = parser.parse_args()
    try:
        chosen = configurations.named(options.configurations) if options.configurations else [None]
    except ValueError as mistake:
        parser.error(str(mistake))
    options.configuration = chosen[0]
    if options.self_test:
        return 0 if self_test(options) else 1
    if not under_cairn.have_cairn():
        print(f"skipped: {under_cairn.CAIRN} is not built")
        return under_cairn.SKIPPED
    if options.script:
        lines = [x for x in options.script.read_text().splitlines() if x and not x.startswith("#")]
        return 0 if check_seed(options, "script", lines) else 1
    first, count = options.seed, options.seeds
    if options.replay is not None:
        first, count, options.keep = options.replay, 1, True
    failed = []
    for configuration in chosen:
        options.configuration = configuration
        failed += [seed for seed in range(first, first + count)
                   if not check_seed(options, seed, generate(options, seed))]
        # With a seed of its own each configuration sees other operations.
        first += count if options.replay is None else 0
    count *= len(chosen)
    if failed:
        print(f"{len(failed)} of {count} seeds differ: {' '.join(map(str, failed))}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
