# SPDX-License-Identifier: Apache-2.0
"""Small writes of HDF5 datasets, whole rows or some columns at a time, on a throttled disk.

The datasets are in one piece, or in chunks without filters; the HDF5 is h5py's. Compared are the disk itself,
memory (tmpfs), Cairn by bytes alone, and Cairn with the connector. What Cairn has stored is read natively at the end.
"""
import os

from harness.errors import BenchError, Skip
from harness.paper_report import interpreter

MIB = 1 << 20
SIDE = 4096
# The side of a chunk, by name.
LAYOUTS = {"contiguous": 0, "64": 64, "256": 256, "1024": 1024}
# Rows of such chunks do not fit in HDF5's cache: without Cairn each row of the dataset moves 32 MiB.
ROWS_TOO_LARGE = {"1024": 64}
SYSTEMS = ("memory", "direct", "bytes", "ours")


def run(bench):
    python = interpreter("h5py", install=not bench.quick)
    if not python:
        raise Skip("needs h5py in build/venv (./dev venv h5py)")
    folder = (bench.directory("hdd") if bench.quick else bench.testbed("hdd")) / "writes"
    folder.mkdir()
    side = 256 if bench.quick else SIDE
    wanted = [name for name in os.environ.get("CAIRN_ARRAYS_LAYOUTS", "").split(",") if name] or list(LAYOUTS)
    unknown = [name for name in wanted if name not in LAYOUTS]
    if unknown:
        raise BenchError(f"CAIRN_ARRAYS_LAYOUTS names '{unknown[0]}'; there are {', '.join(LAYOUTS)}")
    for layout in wanted[-1:] if bench.quick else wanted:
        for by in ("rows", "columns"):
            _measure(bench, python, folder, side, layout, by)


def _measure(bench, python: str, folder, side: int, layout: str, by: str) -> None:
    seconds, checksums = {}, set()
    chunk = min(LAYOUTS[layout], side // 4)
    rows = ROWS_TOO_LARGE.get(layout, side) if by == "rows" and not bench.quick else side
    for system in SYSTEMS:
        file = (bench.memory if system == "memory" else folder) / "a.h5"
        chunks = ["--layout", f"{chunk},{chunk}"] if chunk else []
        words = bench.python_worker(python, "array_writes", file, "--side", side, "--rows", rows, "--by", by, *chunks)
        outcome = _run(bench, system, words, folder, 3 * 4 * side * side + 64 * MIB)
        seconds[system] = (outcome["io_ns"] / 1e9, outcome["stored_ns"] / 1e9)
        checksums.add(bench.native([*words, "--read"])["checksum"])
        file.unlink()
    if len(checksums) != 1:
        raise BenchError(f"{layout}, {by}: the systems have not written the same")
    for at, what in enumerate(("until closed", "until stored")):
        detail = ", ".join(f"{system} {found[at]:.2f} s" for system, found in seconds.items())
        name = f"chunks of {layout}" if chunk else layout
        times = seconds["direct"][at] / max(seconds["ours"][at], 1e-9)
        bench.at_least(f"{name}, {rows} rows by {by}: {what}", times, 1,
                       detail=detail, noise=0.2 if at else 0)


def _run(bench, system: str, words, folder, ram: int) -> dict:
    bench.drop_caches()
    if system in ("memory", "direct"):
        return bench.native(words)
    node = bench.node("--ram", ram, name=f"bench-array-writes-{system}")
    with node:
        return node.run(words, folder, ["--arrays", "on" if system == "ours" else "off"])
