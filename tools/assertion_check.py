#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the assertions of each room of src/ per thousand lines, tests left out, and refuses a room that has too few.

CAIRN_CHECK, CAIRN_DCHECK and static_assert count. A room that works on shared memory needs more of them than others;
one below the goal stands in tools/assertion_budget.txt with what it has, and may not have less.

Usage: assertion_check.py [--raise]     --raise writes what the rooms have now into the budget
"""

import os
import re
import sys

import sources

ASSERTION = re.compile(r"\b(?:CAIRN_CHECK|CAIRN_DCHECK|static_assert)\s*\(")
PER_THOUSAND = 5.0
PER_THOUSAND_ON_SHARED_MEMORY = 10.0
ON_SHARED_MEMORY = tuple(f"memory/{room}" for room in ("arena", "catalog", "pool", "tiers", "buffer", "flush"))
# A room of so few lines has no density worth judging.
LINES_MIN = 150
BUDGET = os.path.join("tools", "assertion_budget.txt")


def room_of(path):
    parts = path.split("/")[1:-1]
    return "/".join(parts[:2])


def densities(texts):
    """{room: (assertions, lines)} of the sources below src/ that are no tests. `texts` is {path: text}."""
    found = {}
    for path, text in texts.items():
        if path.startswith("src/") and sources.is_cpp(path) and not sources.is_test_code(path):
            assertions, lines = found.get(room_of(path), (0, 0))
            found[room_of(path)] = (assertions + len(ASSERTION.findall(text)), lines + len(text.splitlines()))
    return found


def goal_of(room):
    return PER_THOUSAND_ON_SHARED_MEMORY if room in ON_SHARED_MEMORY else PER_THOUSAND


def parse_budget(text):
    """{room: assertions per thousand lines}"""
    rows = (line.split("#")[0].split() for line in text.splitlines())
    return {row[0]: float(row[1]) for row in rows if row}


def problems_of(found, budget):
    problems = []
    for room, (assertions, lines) in sorted(found.items()):
        density = 1000 * assertions / lines
        if density >= goal_of(room) or lines < LINES_MIN:
            if room in budget:
                problems.append(f"{BUDGET}: {room} has reached its goal; remove the entry")
        elif density < budget.get(room, goal_of(room)) - 0.05:
            problems.append(f"src/{room}: {density:.1f} assertions per 1000 lines; at least "
                            f"{budget.get(room, goal_of(room)):.1f} are wanted")
    return problems


def budget_text(found):
    """The budget that the rooms need now: what they have, rounded down to a tenth."""
    lines = ["# Rooms with fewer assertions per thousand lines than their goal, and how many they may not fall below."]
    for room, (assertions, lines_of_room) in sorted(found.items()):
        if 1000 * assertions / lines_of_room < goal_of(room) and lines_of_room >= LINES_MIN:
            lines.append(f"{room} {int(10000 * assertions / lines_of_room) / 10}")
    return "\n".join(lines) + "\n"


def main(arguments):
    texts = {path: sources.read(path) for path in sources.all_files()
             if path.startswith("src/") and sources.is_cpp(path)}
    found = densities(texts)
    if arguments == ["--raise"]:
        with open(os.path.join(sources.ROOT, BUDGET), "w", encoding="utf-8") as file:
            file.write(budget_text(found))
    budget = parse_budget(sources.read(BUDGET)) if os.path.exists(os.path.join(sources.ROOT, BUDGET)) else {}
    problems = problems_of(found, budget)
    for room, (assertions, lines) in sorted(found.items()):
        print(f"{room:24} {1000 * assertions / lines:5.1f} per 1000 lines ({assertions} in {lines})")
    print("\n".join(problems) if problems else "assertions: no room has fewer than it may have")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
