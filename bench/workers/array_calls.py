#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small reads of an HDF5 dataset, one after the other.

    array_calls.py FILE --make --cells 65536        writes the dataset `x`, contiguous
    array_calls.py FILE --calls 20000               reads 1 KiB at a time, in a shuffle

Prints {"call_ns": of one read, in the mean, "checksum": of what was read}.
"""
import argparse
import json
import time

import h5py
import numpy

CELLS_A_CALL = 256  # of 4 bytes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--make", action="store_true")
    parser.add_argument("--cells", type=int, default=65536)
    parser.add_argument("--calls", type=int, default=20000)
    plan = parser.parse_args()
    if plan.make:
        with h5py.File(plan.file, "w") as file:
            file["x"] = numpy.arange(plan.cells, dtype="f4")
        print("{}")
        return
    with h5py.File(plan.file, "r") as file:
        data = file["x"]
        firsts = numpy.random.default_rng(1).integers(0, data.shape[0] - CELLS_A_CALL, plan.calls)
        cells = numpy.empty(CELLS_A_CALL, "f4")
        checksum = 0.0
        # All of it is in memory from here on.
        data[...]
        began = time.perf_counter_ns()
        for first in map(int, firsts):
            data.read_direct(cells, numpy.s_[first:first + CELLS_A_CALL])
            checksum += float(cells[0])
        spent = time.perf_counter_ns() - began
    print(json.dumps({"call_ns": spent / plan.calls, "checksum": checksum}))


if __name__ == "__main__":
    main()
