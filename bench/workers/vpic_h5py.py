#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""VPIC-like steps written with the real HDF5 library (h5py): the program of vpic.cc, not an imitation.

    vpic_h5py.py DIRECTORY --processes 2 --steps 16 --bytes 64M --compute-ms 200
    vpic_h5py.py DIRECTORY ... --check 1       reads all files back and compares, writes nothing

The library without MPI lets one process write a file, so that every process writes one file per step, with eight
datasets (x y z px py pz: float32, id1 id2: int32). --bytes are those of a step, of all processes together. Prints
{"io_ns", "wall_ns", "write_ns", "read_ns"}, where I/O is from opening a file until it is closed.
"""
import argparse
import json
import os
import sys
import time

import h5py
import numpy

import process_team

VARIABLES = (*((name, numpy.float32) for name in ("x", "y", "z", "px", "py", "pz")),
             ("id1", numpy.int32), ("id2", numpy.int32))
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def size(text: str) -> int:
    return int(text[:-1]) * UNITS[text[-1]] if text[-1] in UNITS else int(text)


def path(plan, step: int, process: int) -> str:
    return os.path.join(plan.directory, f"step{step}.{process}.h5")


def values(plan, step: int, process: int, variable: int):
    """What belongs into a dataset: each has other values, exact in its type."""
    count = plan.bytes // (4 * len(VARIABLES) * plan.processes)
    first = ((step * plan.processes + process) * len(VARIABLES) + variable) * 7919
    # Below 2^24, where float32 still holds every integer.
    return ((numpy.arange(count, dtype=numpy.int64) + first) % (1 << 24)).astype(VARIABLES[variable][1])


def write_steps(plan, process: int, barrier) -> list:
    """Returns the nanoseconds of each step's I/O."""
    times = []
    for step in range(plan.steps):
        arrays = [values(plan, step, process, variable) for variable in range(len(VARIABLES))]
        if step > 0:
            time.sleep(plan.compute_ms / 1000)
        barrier.wait()
        begin = time.monotonic_ns()
        with h5py.File(path(plan, step, process), "w") as file:
            for (name, _), array in zip(VARIABLES, arrays):
                file.create_dataset(name, data=array)
        times.append(time.monotonic_ns() - begin)
        barrier.wait()
    return times


def run_team(plan) -> dict:
    begin = time.monotonic_ns()
    times = process_team.run(plan.processes, lambda process, barrier: write_steps(plan, process, barrier))
    wall = time.monotonic_ns() - begin
    io = sum(max(step) for step in zip(*times))
    return {"io_ns": io, "wall_ns": wall, "write_ns": io, "read_ns": 0}


def check(plan) -> None:
    for step in range(plan.steps):
        for process in range(plan.processes):
            with h5py.File(path(plan, step, process), "r") as file:
                for variable, (name, _) in enumerate(VARIABLES):
                    if not numpy.array_equal(file[name][...], values(plan, step, process, variable)):
                        sys.exit(f"wrong content: {file.filename}, {name}")


def main() -> None:
    parser = argparse.ArgumentParser(description="VPIC-like steps written with h5py")
    parser.add_argument("directory")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--bytes", type=size, default="64M")
    parser.add_argument("--compute-ms", type=int, default=200)
    parser.add_argument("--check", type=int, default=0)
    plan = parser.parse_args()
    if plan.check:
        check(plan)
        print("{}")
    else:
        print(json.dumps(run_team(plan)))


if __name__ == "__main__":
    main()
