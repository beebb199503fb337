#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Processes that each own a patch of a region, as those of a weather model do, and read it again in several phases.

    climate_patches.py FILE --make SOURCE --records 60     writes FILE (netCDF-4) from the fields of SOURCE
    climate_patches.py FILE --output DIRECTORY --compute-ms 300 [--window 3]   reads it

SOURCE is levitus_climatology.cdf of ferret-datasets as netCDF-4 (`ncks -4`): temperature and salinity of the oceans,
20 levels of 180 x 360. FILE repeats them record after record, each a little warmer, in chunks of a quarter of the
region: a patch. Each of four processes reads windows of several records of its own patch, and computes on each before
it reads the next one; all begin a window together. The phases read both fields, the temperature alone, both backwards
as an adjoint does, and both once more. What each phase found is written into DIRECTORY.

Prints {"io_ns", "wall_ns", "windows", "checksum"}: I/O is the time of the slowest process in each window's reads and
each phase's write; the checksum is of all bytes that were read.
"""
import argparse
import json
import os
import time
import zlib

import h5py
import numpy

import process_team

FIELDS = ("TEMP", "SALT")
DIMENSIONS = ("ZAXLEVITR", "YAXLEVITR", "XAXLEVITR")
PATCHES = 4
# For each phase the fields that it reads, and whether from the last record on.
PHASES = ((FIELDS, False), (FIELDS[:1], False), (FIELDS, True), (FIELDS, False))
DRIFT = numpy.float32(0.01)
# What the climatology has where there is land.
MISSING_BELOW = -1e9


def make(plan) -> None:
    with h5py.File(plan.make, "r") as source, h5py.File(plan.file, "w", track_order=True) as file:
        axes = [("TIME", numpy.arange(plan.records, dtype="f8"))] + [(name, source[name][...]) for name in DIMENSIONS]
        for name, values in axes:
            file.create_dataset(name, data=values).make_scale(name)
        fields = {name: source[name][...] for name in FIELDS}
        made = {}
        for name, values in fields.items():
            levels, rows, columns = values.shape
            made[name] = file.create_dataset(name, (plan.records, *values.shape), "f4",
                                             chunks=(1, levels, rows // 2, columns // 2))
            for number, (axis, _) in enumerate(axes):
                made[name].dims[number].attach_scale(file[axis])
        for record in range(plan.records):
            for name, values in fields.items():
                made[name][record] = numpy.where(values < MISSING_BELOW, values, values + record * DRIFT)
    print("{}")


class Patch:
    """What one process does."""

    def __init__(self, plan, number: int, barrier):
        self._plan = plan
        self._number = number
        self._barrier = barrier
        self._io = []
        self._checksum = 0

    def run(self):
        """Returns the nanoseconds of each step of I/O that all do together, and the checksum of what was read."""
        for number, (fields, is_backwards) in enumerate(PHASES):
            with h5py.File(self._plan.file, "r") as file:
                found = self._phase([file[name] for name in fields], is_backwards)
            self._timed(lambda: numpy.save(f"{self._plan.output}/phase{number}.{self._number}.npy", found))
        return self._io, self._checksum

    def _phase(self, fields, is_backwards: bool):
        _, levels, rows, columns = fields[0].chunks
        row, column = divmod(self._number, 2)
        own = numpy.s_[:, row * rows:(row + 1) * rows, column * columns:(column + 1) * columns]
        records = range(fields[0].shape[0])
        if is_backwards:
            records = records[::-1]
        total = numpy.zeros((levels, rows, columns), "f8")
        for first in range(0, len(records), self._plan.window):
            window = records[first:first + self._plan.window]
            read = self._timed(lambda: [field[record, *own] for record in window for field in fields])
            begin = time.monotonic()
            for values in read:
                self._checksum = zlib.crc32(values, self._checksum)
                total += values
            # The rest of a model's step, on a core of its own.
            time.sleep(max(0, self._plan.compute_ms / 1000 - (time.monotonic() - begin)))
        return total

    def _timed(self, action):
        self._barrier.wait()
        begin = time.monotonic_ns()
        result = action()
        self._io.append(time.monotonic_ns() - begin)
        return result


def read(plan) -> dict:
    begin = time.monotonic_ns()
    found = process_team.run(PATCHES, lambda number, barrier: Patch(plan, number, barrier).run())
    return {"io_ns": sum(map(max, zip(*(io for io, _ in found)))), "wall_ns": time.monotonic_ns() - begin,
            "windows": len(found[0][0]), "checksum": [checksum for _, checksum in found]}


def main() -> None:
    parser = argparse.ArgumentParser(description="patches of a climate model's output, read in several phases")
    parser.add_argument("file")
    parser.add_argument("--make")
    parser.add_argument("--records", type=int, default=60)
    parser.add_argument("--output")
    parser.add_argument("--window", type=int, default=3)
    parser.add_argument("--compute-ms", type=float, default=300)
    plan = parser.parse_args()
    if plan.make:
        make(plan)
    else:
        os.makedirs(plan.output, exist_ok=True)
        print(json.dumps(read(plan)))


if __name__ == "__main__":
    main()
