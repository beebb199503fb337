# SPDX-License-Identifier: Apache-2.0
"""Patterns of h5bench on a throttled disk: four processes write an HDF5 file each, and read it with cold caches.

Readers compute between their calls, for twice as long as the disk needs for what all of them read. The files of both
systems are the same, compared by what is read of them natively.
"""
import shutil

from harness.errors import BenchError, Skip
from harness.paper_report import interpreter

MIB = 1 << 20
PATTERNS = ("contiguous", "interleaved", "strided", "blocks")
# Times direct, for reads: those of the issue.
READS_AT_LEAST = {"strided": 4}
PROCESSES = 4
CELLS = 4096 * 4096
READ_COMPUTE_MS = {"contiguous": 280, "interleaved": 1200, "strided": 280, "blocks": 70}


def run(bench):
    python = interpreter("h5py", install=not bench.quick)
    if not python:
        raise Skip("needs h5py in build/venv (./dev venv h5py)")
    directory = bench.directory("hdd") if bench.quick else bench.testbed("hdd")
    cells = 512 * 512 if bench.quick else CELLS
    for pattern in PATTERNS[-1:] if bench.quick else PATTERNS:
        _measure(bench, python, directory / pattern, pattern, cells)


def _measure(bench, python: str, folder, pattern: str, cells: int) -> None:
    seconds, checksums = {}, set()
    for system in ("direct", "ours"):
        folder.mkdir()
        for way in ("write", "read"):
            words = bench.python_worker(python, "array_patterns", folder, "--pattern", pattern, "--do", way,
                                        "--cells", cells, "--compute-ms",
                                        READ_COMPUTE_MS[pattern] if way == "read" and not bench.quick else 0)
            outcome = _run(bench, system, words, folder, cells)
            seconds[system, way] = outcome["io_ns"] / 1e9
            seconds[system, f"{way} until stored"] = outcome["stored_ns"] / 1e9
        checksums.add(str(outcome["checksum"]))
        # What Cairn has stored, as others see it.
        checksums.add(str(bench.native(words)["checksum"]))
        shutil.rmtree(folder)
    if len(checksums) != 1:
        raise BenchError(f"{pattern}: the systems have not read the same")
    for way, target in (("write", 1), ("write until stored", 1), ("read", READS_AT_LEAST.get(pattern, 1))):
        direct, ours = seconds["direct", way], seconds["ours", way]
        bench.at_least(f"{pattern}: {way}", direct / max(ours, 1e-9), target,
                       detail=f"direct {direct:.3f} s, ours {ours:.3f} s")


def _run(bench, system: str, words, folder, cells: int) -> dict:
    bench.drop_caches()
    if system == "direct":
        return bench.native(words)
    node = bench.node("--ram", 3 * PROCESSES * 4 * cells + 64 * MIB, name="bench-array-patterns")
    with node:
        return node.run(words, folder)
