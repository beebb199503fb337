#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Processes that write or read an HDF5 dataset each, in one of the patterns of h5bench (Tang et al. 2021, section III).

    array_patterns.py FOLDER --pattern contiguous|interleaved|strided|blocks --do write|read --cells 1048576

    contiguous    one dataset, in stretches
    interleaved   records of four numbers, one field of all records at a time
    strided       1024 cells of every 8192; a writer goes on with the next ones until all have had their turn
    blocks        a square, in blocks of 64 x 64 that leave as much room between them, until all have had their turn

Prints {"io_ns": of the slowest process until its file is closed, "stored_ns": until its fsync has returned as well,
"checksum": of the cells}.
"""
import argparse
import hashlib
import itertools
import json
import os
import pathlib
import time

import h5py
import numpy
import process_team

PROCESSES = 4
STRETCHES = 16
BLOCK = 64
STRIDE, STRIDE_BLOCK = 8192, 1024
RECORD = numpy.dtype([(name, "f4") for name in "abcd"])


def selections(pattern: str, cells: int, is_write: bool):
    """(start, count, stride, block) of each call's hyperslab, and the shape of what it moves."""
    if pattern == "contiguous":
        part = cells // STRETCHES
        for number in range(STRETCHES):
            yield ((number * part,), (1,), (part,), (part,)), (part,)
    elif pattern == "strided":
        turns = range(0, STRIDE, STRIDE_BLOCK) if is_write else (0,)
        part = cells // STRETCHES
        for first, number in itertools.product(turns, range(STRETCHES)):
            count = part // STRIDE
            yield ((number * part + first,), (count,), (STRIDE,), (STRIDE_BLOCK,)), (count * STRIDE_BLOCK,)
    else:
        side = round(cells ** 0.5)
        count = side // (2 * BLOCK)
        # A band of blocks at a time.
        for band, row, column in itertools.product(range(count), (0, 1), (0, 1)):
            start = ((2 * band + row) * BLOCK, column * BLOCK)
            yield (start, (1, count), (2 * BLOCK, 2 * BLOCK), (BLOCK, BLOCK)), (BLOCK, count * BLOCK)


def move(data, pattern: str, cells: int, is_write: bool, cell_values, pause) -> list:
    """Returns: what was read, in the order of the calls."""
    found = []
    if pattern == "interleaved":
        for number, name in enumerate(RECORD.names):
            if is_write:
                data.write_direct(cell_values(number, (cells // 4,)).astype([(name, "f4")]))
            else:
                found.append(data[name])
            pause()
        return found
    for number, (box, shape) in enumerate(selections(pattern, cells, is_write)):
        space = data.id.get_space()
        start, count, stride, block = box
        space.select_hyperslab(start, count, stride, block)
        memory = h5py.h5s.create_simple(shape)
        values = cell_values(number, shape) if is_write else numpy.empty(shape, "f4")
        (data.id.write if is_write else data.id.read)(memory, space, values)
        if not is_write:
            found.append(values)
        pause()
    return found


def run_one(plan, number: int, barrier) -> tuple:
    path = pathlib.Path(plan.folder) / f"{plan.pattern}{number}.h5"
    is_write = plan.do == "write"
    side = round(plan.cells ** 0.5)
    shape = {"blocks": (side, side), "interleaved": (plan.cells // 4,)}.get(plan.pattern, (plan.cells,))
    values = numpy.random.default_rng(number).random(plan.cells, dtype="f4")

    def cell_values(call: int, wanted):
        size = int(numpy.prod(wanted))
        first = call * size % max(1, plan.cells - size)
        return numpy.ascontiguousarray(values[first:first + size]).reshape(wanted)

    paused_ns = 0

    def pause():
        nonlocal paused_ns
        before = time.monotonic_ns()
        time.sleep(plan.compute_ms / 1000)
        paused_ns += time.monotonic_ns() - before

    barrier.wait()
    began = time.monotonic_ns()
    with h5py.File(path, "w" if is_write else "r") as file:
        data = (file.create_dataset("x", shape, RECORD if plan.pattern == "interleaved" else "f4") if is_write
                else file["x"])
        found = move(data, plan.pattern, plan.cells, is_write, cell_values, pause)
    closed = time.monotonic_ns()
    if is_write:
        handle = os.open(path, os.O_RDONLY)
        os.fsync(handle)
        os.close(handle)
    stored = time.monotonic_ns()
    digest = hashlib.sha256()
    for part in found:
        digest.update(part.tobytes())
    return closed - began - paused_ns, stored - began - paused_ns, digest.hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--pattern", choices=("contiguous", "interleaved", "strided", "blocks"), required=True)
    parser.add_argument("--do", choices=("write", "read"), required=True)
    parser.add_argument("--cells", type=int, required=True)
    parser.add_argument("--compute-ms", type=int, default=0, help="between the calls; not counted")
    plan = parser.parse_args()
    results = process_team.run(PROCESSES, lambda number, barrier: run_one(plan, number, barrier))
    print(json.dumps({"io_ns": max(io for io, _, _ in results), "stored_ns": max(stored for _, stored, _ in results),
                      "checksum": [digest for _, _, digest in results]}))


if __name__ == "__main__":
    main()
