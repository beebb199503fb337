#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the stages of a pipeline of ordinary programs in a directory, one stage after the other.

    pipeline.py DIRECTORY PLAN --processes 2

PLAN is a JSON list of stages, each with a "name" and one of
    "commands": [[WORD, ...], ...]   run in the directory, or in "directory" under it, at most --processes at a time
    "split": FILE, "parts": N        a table of montage is divided into FILE.0, FILE.1, ...
    "join": FILE, "parts": N         the tables FILE.0, FILE.1, ... become FILE
A program that fails, or says so on its standard output as those of montage do, ends the pipeline. Prints
{"wall_ns", "stages": {name: ns}}.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

COMPLAINT = 'stat="ERROR"'


def run_commands(commands, directory: str, processes: int) -> None:
    running, waiting = [], list(reversed(commands))
    while running or waiting:
        while waiting and len(running) < processes:
            # A pipe that nobody reads would hold up who says much.
            said = tempfile.TemporaryFile()
            words = waiting.pop()
            running.append((words, said, subprocess.Popen(words, cwd=directory, stdin=subprocess.DEVNULL, stdout=said,
                                                          stderr=said)))
        words, said, process = next_ended(running)
        said.seek(0)
        text = said.read().decode(errors="replace")
        said.close()
        if process.returncode != 0 or COMPLAINT in text:
            for _, _, other in running:
                other.kill()
            sys.exit(f"'{' '.join(words)}' ended with {process.returncode}: {text.strip()[-800:]}")


def next_ended(running):
    """Taken out of the list; waits without asking again and again."""
    pid, status = os.waitpid(-1, 0)
    at = next(at for at, entry in enumerate(running) if entry[2].pid == pid)
    entry = running.pop(at)
    entry[2].returncode = os.waitstatus_to_exitcode(status)
    return entry


def lines_of_table(path: str):
    """Its head, which begins with | or \\, and its rows."""
    lines = pathlib.Path(path).read_text().splitlines(keepends=True)
    head = [line for line in lines if line[0] in "|\\"]
    return head, [line for line in lines if line[0] not in "|\\"]


def split(path: str, parts: int) -> None:
    head, rows = lines_of_table(path)
    for part in range(parts):
        # Neighbours stay together: they share images.
        own = rows[len(rows) * part // parts:len(rows) * (part + 1) // parts]
        pathlib.Path(f"{path}.{part}").write_text("".join(head + own))


def join(path: str, parts: int) -> None:
    tables = [lines_of_table(f"{path}.{part}") for part in range(parts)]
    pathlib.Path(path).write_text("".join(tables[0][0] + [row for _, rows in tables for row in rows]))


def run_stage(stage, processes: int) -> None:
    if "split" in stage:
        split(stage["split"], stage["parts"])
    elif "join" in stage:
        join(stage["join"], stage["parts"])
    else:
        run_commands(stage["commands"], stage.get("directory", "."), processes)


def main() -> None:
    parser = argparse.ArgumentParser(description="stages of a pipeline of programs")
    parser.add_argument("directory")
    parser.add_argument("plan")
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    stages = json.loads(pathlib.Path(arguments.plan).read_text())
    os.chdir(arguments.directory)
    times = {}
    begin = time.monotonic_ns()
    for stage in stages:
        began = time.monotonic_ns()
        run_stage(stage, arguments.processes)
        times[stage["name"]] = time.monotonic_ns() - began
    print(json.dumps({"wall_ns": time.monotonic_ns() - begin, "stages": times}))


if __name__ == "__main__":
    main()
