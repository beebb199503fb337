#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the Promela models of protocols in shared memory with spin, and that they are those of the code.

    tests/protocols/run.py table     the transition table of the model is that of memory/catalog/block_state.h
    tests/protocols/run.py check     no scene breaks an assertion or waits for ever, in any order of the steps
    tests/protocols/run.py guards    without any one of its guards, the model is found to be wrong

spin writes a verifier in C, which is compiled and run. Without spin or a C compiler: exit 77. A run that breaks an
assertion is printed step by step.
"""
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
MODEL = os.path.join(HERE, "block_life.pml")
STATES = os.path.join(SOURCE, "src", "memory", "catalog", "block_state.h")
JOBS = 2

# All processes at once have too many orders for seconds: those that touch the same words, three at a time.
SCENES = {
    "a block is written, flushed and synced": ["WRITER", "FLUSHER", "SYNCER", "WRITES=1"],
    "a dirty block is written, flushed and synced": ["WRITER", "FLUSHER", "SYNCER", "WRITES=2", "BEGINS_DIRTY"],
    "a block is written, flushed and moved": ["WRITER", "FLUSHER", "MOVER", "WRITES=1"],
    "a dirty block is written, flushed and moved": ["WRITER", "FLUSHER", "MOVER", "WRITES=2", "BEGINS_DIRTY"],
    "a block is written, moved and searched": ["WRITER", "MOVER", "FINDER", "WRITES=1"],
    "a dirty block is moved, flushed and searched": ["MOVER", "FLUSHER", "FINDER", "BEGINS_DIRTY"],
    "a dirty block is moved, synced and searched": ["MOVER", "SYNCER", "FINDER", "BEGINS_DIRTY"],
    "a dirty block is flushed by two, who both die": ["FLUSHER", "SYNCER", "BEGINS_DIRTY", "DEATHS=2"],
}

# Each guard that is taken away, and the scene in which that shows.
GUARDS = {
    "WITHOUT_TAKEOVER": "a block is written, flushed and synced",
    "WITHOUT_LOOK_AFTER_STEAL": "a block is written, flushed and moved",
    "WITHOUT_MARK_AFTER_STEAL": "a dirty block is written, flushed and moved",
    "WITHOUT_MARK_OF_WRITE": "a block is written, flushed and synced",
    "WITHOUT_MARK_OF_MOVE": "a dirty block is written, flushed and moved",
    "WITHOUT_LOOK_AT_CLAIM": "a dirty block is written, flushed and synced",
    "WITHOUT_LOOK_AT_HOLDERS": "a dirty block is written, flushed and moved",
    "WITHOUT_SEQUENCE": "a dirty block is written, flushed and synced",
    "WITHOUT_ARRIVAL": "a block is written, moved and searched",
    "VALID_BEFORE_DIRTY": "a block is written, flushed and synced",
}


def run(command, directory, seconds=600):
    return subprocess.run(command, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=seconds, check=False)


def verify(defines, optimise):
    """Whether no run breaks anything, and what the verifier says."""
    with tempfile.TemporaryDirectory(prefix="cairn-spin-") as directory:
        shutil.copy(MODEL, os.path.join(directory, "model.pml"))
        generated = run(["spin", "-a", *[f"-D{name}" for name in defines], "model.pml"], directory)
        if generated.returncode != 0:
            sys.exit(f"spin cannot read the model with {defines}:\n{generated.stdout}")
        compiled = run(["cc", optimise, "-w", "-DSAFETY", "-DCOLLAPSE", "-DMEMLIM=3000", "-o", "pan", "pan.c"],
                       directory)
        if compiled.returncode != 0:
            sys.exit(f"the verifier does not compile:\n{compiled.stdout}")
        said = run(["./pan", "-m100000"], directory).stdout
        found = re.search(r"errors: (\d+)", said)
        # A search that was cut short has proved nothing.
        if found is None or "max search depth too small" in said or "out of memory" in said:
            sys.exit(f"the verifier has not ended:\n{said}")
        if found.group(1) != "0":
            trail = run(["spin", "-t", "-p", *[f"-D{name}" for name in defines], "model.pml"], directory).stdout
            return False, said + trail
        return True, said


def check_scene(name):
    is_right, said = verify(SCENES[name], "-O1")
    states = re.search(r"(\d+) states, stored", said)
    return f"{name}: {states.group(1)} states" if is_right else "", "" if is_right else f"{name}:\n{said}"


def check_guard(guard):
    is_right, said = verify(SCENES[GUARDS[guard]] + [guard], "-O0")
    if is_right:
        return "", f"{guard}: the model does not miss it in: {GUARDS[guard]}"
    reason = re.search(r"pan:\d+: (.*)", said)
    return f"{guard}: {reason.group(1) if reason else 'found'}", ""


def check_all(function, names):
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        outcomes = list(pool.map(function, names))
    for good, bad in outcomes:
        print(good or bad)
    return 1 if any(bad for _, bad in outcomes) else 0


def table_of_code(text):
    names = re.search(r"enum class BlockState[^{]*\{([^}]*)\}", text).group(1)
    states = [name.split("=")[0].strip() for name in names.split(",")]
    rows = re.search(r"kLegal\[[^=]*=\s*\{(.*?)\n\s*\};", text, re.S).group(1)
    return states, [re.findall(r"true|false", row) for row in re.findall(r"/\* *\w+ *\*/ \{([^}]*)\}", rows)]


def turns_of_code(text):
    states, rows = table_of_code(text)
    if len(rows) != len(states) or any(len(row) != len(states) for row in rows):
        sys.exit(f"{STATES}: the table is not read as one of {len(states)} states")
    return {state: {other for other, may in zip(states, row) if may == "true"} for state, row in zip(states, rows)}


def turns_of_model(text):
    turns = {}
    for state, targets in re.findall(r"#define (k\w+)Turns +\((.*)\)", text):
        turns[state] = set(re.findall(r"TO\((k\w+)\)", targets))
    numbers = dict(re.findall(r"#define (k(?:Free|Filling|Clean|Dirty|Flushing)) (\d)", text))
    return turns, numbers


def check_table():
    with open(STATES, encoding="utf-8") as file:
        text = file.read()
    with open(MODEL, encoding="utf-8") as file:
        model, numbers = turns_of_model(file.read())
    code = turns_of_code(text)
    wrong = 0
    for number, state in enumerate(code):
        if numbers.get(state) != str(number):
            print(f"{state} is {number} in the code and {numbers.get(state)} in the model")
            wrong = 1
        for other in sorted(code[state] ^ model.get(state, set())):
            where = "code" if other in code[state] else "model"
            print(f"{state} -> {other} is legal in the {where} alone")
            wrong = 1
    for state in sorted(set(model) - set(code)):
        print(f"{state} is in the model alone")
        wrong = 1
    if not wrong:
        print(f"{sum(len(turns) for turns in code.values())} legal transitions of {len(code)} states agree")
    return wrong


def main():
    what = sys.argv[1] if len(sys.argv) == 2 else ""
    if what == "table":
        return check_table()
    if what not in ("check", "guards"):
        print(__doc__)
        return 2
    for tool in ("spin", "cc"):
        if shutil.which(tool) is None:
            print(f"skipped: no {tool}")
            return 77
    return check_all(check_scene, SCENES) if what == "check" else check_all(check_guard, GUARDS)


if __name__ == "__main__":
    sys.exit(main())
