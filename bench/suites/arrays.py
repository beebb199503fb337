# SPDX-License-Identifier: Apache-2.0
"""Analyses of arrays in batches on a throttled disk, after the experiments of ARCHIE (section IV): direct, Cairn by
bytes alone, and with the connector.

Shapes are those of the paper, smaller; each process computes between its reads for as long as the paper's do relative
to them. With `filters` the dataset is packed (gzip, shuffle) in chunks of the file. All begin with cold caches and have
the same memory, which holds the array. Passes after the first are of a program that reads the array again.
"""
import dataclasses
import pathlib
import shutil
import statistics

from harness.errors import BenchError, Skip
from harness.paper_report import interpreter

MIB = 1 << 20
SYSTEMS = ("direct", "bytes", "ours")


@dataclasses.dataclass(frozen=True)
class Work:
    name: str
    shape: tuple
    chunk: tuple
    ghost: tuple
    layout: tuple  # of the file's chunks
    processes: int
    compute_ms: int
    later: float  # the figure for the batches after the first, and for all
    overall: float
    filters: bool = False


WORKS = (
    Work("2-D convolution", (8192, 8192), (2048, 2048), (1, 1), (), 4, 2000, 10, 4),
    Work("CAM5", (31, 768, 1152), (31, 768, 32), (0, 0, 0), (), 4, 300, 5, 5),
    Work("VPIC", (320, 320, 320), (40, 40, 40), (1, 1, 1), (), 4, 20, 5, 5),
    Work("S3D", (300, 300, 300), (30, 30, 30), (1, 1, 1), (), 4, 10, 8, 8),
    Work("2-D convolution, packed", (8192, 8192), (2048, 2048), (1, 1), (256, 256), 4, 2000, 5, 5, True),
    Work("VPIC, packed", (320, 320, 320), (40, 40, 40), (1, 1, 1), (40, 40, 40), 4, 20, 5, 5, True),
)


def run(bench):
    python = interpreter("h5py", install=not bench.quick)
    if not python:
        raise Skip("needs h5py in build/venv (./dev venv h5py)")
    if not bench.quick:
        bench.need_memory(4, "arrays and what is unpacked of them")
    directory = bench.directory("hdd") if bench.quick else bench.testbed("hdd")
    for work in WORKS[-1:] if bench.quick else WORKS:
        _measure(bench, python, directory / work.name.replace(" ", "-").replace(",", ""), work)


def _words(numbers) -> str:
    return ",".join(map(str, numbers))


def _measure(bench, python: str, folder: pathlib.Path, work: Work) -> None:
    folder.mkdir()
    shape = tuple(max(1, size // 4) for size in work.shape) if bench.quick else work.shape
    file = folder / "a.h5"
    layout = ["--layout", _words(work.layout)] if work.layout else []
    filters = ["--filters"] if work.filters else []
    how = ["--make", "--shape", _words(shape), *layout, *filters]
    bench.output(bench.python_worker(python, "array_batches", file, *how))
    words = bench.python_worker(
        python, "array_batches", file, "--shape", _words(shape), "--chunk", _words(work.chunk), "--ghost",
        _words(work.ghost), "--processes", work.processes, "--passes", 2,
        "--compute-ms", 1 if bench.quick else work.compute_ms)
    cells = 4
    for size in shape:
        cells *= size
    outcomes = {system: _run(bench, system, words, folder, 3 * cells + 64 * MIB) for system in SYSTEMS}
    checksums = {str(outcome["checksum"]) for outcome in outcomes.values()}
    if len(checksums) != 1:
        raise BenchError(f"{work.name}: the systems have not read the same")
    _say(bench, work, outcomes)
    shutil.rmtree(folder)


def _run(bench, system: str, words, folder, ram: int) -> dict:
    bench.drop_caches()
    if system == "direct":
        return bench.native(words)
    node = bench.node("--ram", ram, name=f"bench-arrays-{system}")
    with node:
        return node.run(words, folder, ["--arrays", "on" if system == "ours" else "off"])


def _parts(outcome) -> dict:
    """Seconds of I/O: of the first pass, of its batches but the first, of the second pass."""
    batches = [ns / 1e9 for ns in outcome["io_ns"]]
    first = batches[:len(batches) // 2]
    return {"all batches": sum(first), "batches after the first": sum(first[1:]),
            "read again": sum(batches[len(batches) // 2:])}


def _say(bench, work: Work, outcomes) -> None:
    parts = {system: _parts(outcome) for system, outcome in outcomes.items()}
    targets = {"all batches": work.overall, "batches after the first": work.later, "read again": work.later}
    for part, target in targets.items():
        seconds = {system: found[part] for system, found in parts.items()}
        detail = ", ".join(f"{system} {value:.2f} s" for system, value in seconds.items())
        bench.at_least(f"{work.name}: {part}", seconds["direct"] / max(seconds["ours"], 1e-9), target, detail=detail)
    alone = [parts["direct"][part] / max(parts["bytes"][part], 1e-9) for part in targets]
    bench.note(f"{work.name}: bytes alone {statistics.median(alone):.1f}x")
