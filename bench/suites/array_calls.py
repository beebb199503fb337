# SPDX-License-Identifier: Apache-2.0
"""What the HDF5 connector costs a program for which it can do nothing: small reads of a dataset that it keeps none of.

The same program under the same node with the connector and without, in turns; its bytes are in RAM both times.
"""
import statistics

from harness.errors import BenchError, Skip
from harness.paper_report import interpreter

MIB = 1 << 20
MOST_US = 2


def run(bench):
    python = interpreter("h5py", install=not bench.quick)
    if not python:
        raise Skip("needs h5py in build/venv (./dev venv h5py)")
    folder = bench.directory("disk")
    file = folder / "small.h5"
    bench.output(bench.python_worker(python, "array_calls", file, "--make"))
    words = bench.python_worker(python, "array_calls", file, "--calls", 500 if bench.quick else 50_000)
    with bench.node("--ram", 64 * MIB, name="bench-array-calls") as node:
        pairs = bench.in_turns(lambda: node.run(words, folder, ["--arrays", "on"]),
                               lambda: node.run(words, folder, ["--arrays", "off"]))
    native = bench.native(words)
    if len({str(outcome["checksum"]) for pair in pairs for outcome in pair} | {str(native["checksum"])}) != 1:
        raise BenchError("not all runs have read the same")
    more = statistics.median(ours["call_ns"] - theirs["call_ns"] for ours, theirs in pairs) / 1000
    ours, theirs = (statistics.median(outcome["call_ns"] for outcome in side) / 1000 for side in zip(*pairs))
    bench.at_most("a read of 1 KiB, what the connector adds", more, MOST_US, "us",
                  detail=f"{ours:.2f} us, without it {theirs:.2f} us, natively {native['call_ns'] / 1000:.2f} us")
