#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Processes that analyse an array chunk by chunk, in batches, as the experiments of ARCHIE do (section IV).

    array_batches.py FILE --make --shape 8192,8192 [--layout 256,256 --filters]     writes the dataset `x`
    array_batches.py FILE --shape ... --chunk 2048,2048 --ghost 1,1 --processes 4 --compute-ms 300 --passes 1

Each process takes every so-manieth chunk in row-major order, with its ghost zone, and computes on it; all begin a batch
together. Prints {"io_ns": [of each batch], "wall_ns", "checksum"}: the I/O of a batch is that of its slowest process;
the checksum is of all cells that were read.
"""
import argparse
import itertools
import json
import time
import zlib

import h5py
import numpy

import process_team

CELLS_AT_A_TIME = 1 << 24


def numbers(text):
    return tuple(int(number) for number in text.split(","))


def make(plan) -> None:
    """A smooth field with noise in its low digits, as measured and simulated ones are."""
    how = {"chunks": plan.layout} if plan.layout else {}
    if plan.filters:
        how |= {"compression": "gzip", "compression_opts": 1, "shuffle": True}
    random = numpy.random.default_rng(1)
    with h5py.File(plan.file, "w") as file:
        data = file.create_dataset("x", plan.shape, "f4", **how)
        row_cells = int(numpy.prod(plan.shape[1:]))
        step = max(1, CELLS_AT_A_TIME // row_cells)
        if plan.layout:
            step = max(plan.layout[0], step // plan.layout[0] * plan.layout[0])
        for first in range(0, plan.shape[0], step):
            last = min(plan.shape[0], first + step)
            cells = (last - first) * row_cells
            slope = numpy.arange(cells, dtype="f4") * numpy.float32(1e-3)
            noise = random.integers(0, 1 << 8, cells).astype("f4") * numpy.float32(1e-2)
            data[first:last] = (slope + noise).reshape((last - first, *plan.shape[1:]))
    print("{}")


def boxes(plan) -> list:
    starts = [range(0, size, chunk) for size, chunk in zip(plan.shape, plan.chunk, strict=True)]
    return [tuple(slice(max(0, first - ghost), min(size, first + chunk + ghost))
                  for first, chunk, ghost, size in zip(corner, plan.chunk, plan.ghost, plan.shape, strict=True))
            for corner in itertools.product(*starts)]


def analyse(plan, number: int, barrier) -> tuple:
    spent, checksum = [], 0
    everything = boxes(plan)
    with h5py.File(plan.file, "r") as file:
        data = file["x"]
        for _ in range(plan.passes):
            for batch in range(0, len(everything), plan.processes):
                barrier.wait()
                began = time.monotonic_ns()
                mine = everything[batch + number:batch + number + 1]
                cells = [data[box] for box in mine]
                spent.append(time.monotonic_ns() - began)
                for found in cells:
                    checksum = zlib.crc32(found.tobytes(), checksum)
                time.sleep(plan.compute_ms / 1000)
    return spent, checksum


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--make", action="store_true")
    parser.add_argument("--filters", action="store_true")
    for name in ("shape", "layout", "chunk", "ghost"):
        parser.add_argument(f"--{name}", type=numbers)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--passes", type=int, default=1)
    parser.add_argument("--compute-ms", type=int, default=0)
    plan = parser.parse_args()
    if plan.make:
        return make(plan)
    began = time.monotonic_ns()
    results = process_team.run(plan.processes, lambda number, barrier: analyse(plan, number, barrier))
    slowest = [max(times) for times in zip(*(spent for spent, _ in results), strict=True)]
    print(json.dumps({"io_ns": slowest, "wall_ns": time.monotonic_ns() - began,
                      "checksum": [checksum for _, checksum in results]}))
    return None


if __name__ == "__main__":
    main()
