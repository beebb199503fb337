#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes an HDF5 dataset of floats in small pieces, or reads it.

    array_writes.py FILE --side 4096 [--rows 64] [--layout 256,256] --by rows|columns [--width 64] [--read]

Rows are written one at a time, all or the first ones; columns `width` at a time. Prints {"io_ns": until the file is
closed, "stored_ns": until its fsync has returned as well, "checksum": of what was read}.
"""
import argparse
import hashlib
import json
import os
import time

import h5py
import numpy


def write(plan) -> tuple:
    cells = numpy.random.default_rng(plan.side).random((plan.side, plan.side), dtype="f4")
    columns = [numpy.ascontiguousarray(cells[:, first:first + plan.width])
               for first in range(0, plan.side, plan.width)]
    began = time.monotonic_ns()
    with h5py.File(plan.file, "w") as file:
        data = file.create_dataset("x", cells.shape, "f4", chunks=plan.layout)
        if plan.by == "rows":
            for row in range(plan.rows or plan.side):
                data[row] = cells[row]
        else:
            for number, column in enumerate(columns):
                data[:, number * plan.width:(number + 1) * plan.width] = column
    closed = time.monotonic_ns()
    handle = os.open(plan.file, os.O_RDONLY)
    os.fsync(handle)
    os.close(handle)
    return closed - began, time.monotonic_ns() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--side", type=int, required=True)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--layout", type=lambda text: tuple(map(int, text.split(","))))
    parser.add_argument("--by", choices=("rows", "columns"), default="rows")
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--read", action="store_true")
    plan = parser.parse_args()
    outcome = {}
    if plan.read:
        with h5py.File(plan.file, "r") as file:
            outcome["checksum"] = hashlib.sha256(file["x"][...].tobytes()).hexdigest()
    else:
        outcome["io_ns"], outcome["stored_ns"] = write(plan)
    print(json.dumps(outcome))


if __name__ == "__main__":
    main()
