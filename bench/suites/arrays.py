# SPDX-License-Identifier: Apache-2.0
"""Analyses of arrays in batches on throttled stores, after the experiments of ARCHIE (section IV).

Measured are the store itself, staging in first, Cairn by bytes alone, and Cairn with the connector. That learns in what
chunks programs read the array, or users tell it.
Shapes are those of the paper, smaller; each process computes between its reads for as long as the paper's do relative
to them. With `filters` the dataset is packed (gzip, shuffle) in chunks of the file. All begin with cold caches and have
the same memory, which holds the array. Passes after the first are of a program that reads the array again.

To stage in first is to copy the file to the testbed's `nvme` and to read it there, as DataWarp's users do: the copy is
a part of its first batch. Batches after the first are compared without it.
"""
import dataclasses
import os
import pathlib
import shutil
import statistics
import time

from harness.errors import BenchError, Skip
from harness.paper_report import interpreter

MIB = 1 << 20
# `told`: `cairn run --array` says in what chunks the array will be read.
SYSTEMS = ("direct", "staged", "bytes", "ours", "told")
ARRAYS = {"bytes": ["--arrays", "off"], "ours": ["--arrays", "on"]}
LEARNED_AT_LEAST = 0.9  # times told
STORES = ("hdd", "pfs")


@dataclasses.dataclass(frozen=True)
class Work:
    """Targets are those of the issue; 0 is none."""
    name: str
    shape: tuple
    chunk: tuple
    ghost: tuple
    layout: tuple  # of the file's chunks
    processes: int
    compute_ms: int
    later: float  # times direct, of the batches after the first
    overall: float  # and of all
    later_staged: float  # times staging in first
    overall_staged: float
    filters: bool = False

    def key(self) -> str:
        return self.name.lower().replace(" ", "-").replace(",", "")


WORKS = (
    Work("2-D convolution", (8192, 8192), (2048, 2048), (1, 1), (), 4, 2000, 10, 4, 8, 0),
    Work("CAM5", (31, 768, 1152), (31, 768, 32), (0, 0, 0), (), 4, 300, 5, 5, 3, 3),
    Work("VPIC", (320, 320, 320), (40, 40, 40), (1, 1, 1), (), 4, 20, 5, 5, 4, 4),
    Work("S3D", (300, 300, 300), (30, 30, 30), (1, 1, 1), (), 4, 10, 8, 8, 9, 9),
    Work("2-D convolution, packed", (8192, 8192), (2048, 2048), (1, 1), (256, 256), 4, 2000, 5, 5, 0, 0, True),
    Work("CAM5, packed", (31, 768, 1152), (31, 768, 32), (0, 0, 0), (31, 64, 32), 4, 300, 5, 5, 0, 0, True),
    Work("S3D, packed", (300, 300, 300), (30, 30, 30), (1, 1, 1), (30, 30, 30), 4, 10, 5, 5, 0, 0, True),
    Work("VPIC, packed", (320, 320, 320), (40, 40, 40), (1, 1, 1), (40, 40, 40), 4, 20, 5, 5, 0, 0, True),
)


def run(bench):
    python = interpreter("h5py", install=not bench.quick)
    if not python:
        raise Skip("needs h5py in build/venv (./dev venv h5py)")
    works = _chosen("CAIRN_ARRAYS_ONLY", {work.key(): work for work in WORKS})
    stores = _chosen("CAIRN_ARRAYS_STORES", {store: store for store in STORES})
    if bench.quick:
        return _measure(bench, python, bench.directory("hdd"), bench.directory("nvme"), works[-1], "hdd")
    bench.need_memory(4, "arrays and what is unpacked of them")
    buffer = bench.testbed("nvme")
    for store in stores:
        try:
            directory = bench.testbed(store)
        except Skip as reason:
            bench.note(f"{store}: not measured: {reason}")
            continue
        for work in works:
            _measure(bench, python, directory, buffer, work, store)
    return None


def _chosen(variable: str, all_of: dict) -> list:
    """Those that the variable names, with commas; all without it."""
    names = [name for name in os.environ.get(variable, "").split(",") if name]
    unknown = [name for name in names if name not in all_of]
    if unknown:
        raise BenchError(f"{variable} names '{unknown[0]}'; there are {', '.join(all_of)}")
    return [value for name, value in all_of.items() if not names or name in names]


def _words(numbers) -> str:
    return ",".join(map(str, numbers))


def _measure(bench, python: str, directory, buffer, work: Work, store: str) -> None:
    folder = directory / work.key()
    folder.mkdir()
    shape = tuple(max(1, size // 4) for size in work.shape) if bench.quick else work.shape
    file = folder / "a.h5"
    layout = ["--layout", _words(work.layout)] if work.layout else []
    filters = ["--filters"] if work.filters else []
    how = ["--make", "--shape", _words(shape), *layout, *filters]
    bench.output(bench.python_worker(python, "array_batches", file, *how))

    def analyse(path) -> list:
        return bench.python_worker(
            python, "array_batches", path, "--shape", _words(shape), "--chunk", _words(work.chunk), "--ghost",
            _words(work.ghost), "--processes", work.processes, "--passes", 2,
            "--compute-ms", 1 if bench.quick else work.compute_ms)

    cells = 4
    for size in shape:
        cells *= size
    flags = {**ARRAYS, "told": [*ARRAYS["ours"], "--array",
                                f"{file.name}:/x chunk=[{_words(work.chunk)}] ghost=[{_words(work.ghost)}]"]}
    outcomes = {}
    for system in SYSTEMS:
        if system == "staged":
            outcomes[system] = _run_staged(bench, analyse, file, buffer)
        else:
            ram = 3 * cells + 64 * MIB
            outcomes[system] = _run(bench, system, analyse(file), folder, ram, flags.get(system, []))
    checksums = {str(outcome["checksum"]) for outcome in outcomes.values()}
    if len(checksums) != 1:
        raise BenchError(f"{work.name}: the systems have not read the same")
    _say(bench, work, store, outcomes)
    shutil.rmtree(folder)


def _run(bench, system: str, words, folder, ram: int, flags) -> dict:
    bench.drop_caches()
    if system == "direct":
        return bench.native(words)
    node = bench.node("--ram", ram, name=f"bench-arrays-{system}")
    with node:
        return node.run(words, folder, flags)


def _run_staged(bench, analyse, file: pathlib.Path, buffer: pathlib.Path) -> dict:
    """The program begins when the burst buffer has the whole file."""
    bench.drop_caches()
    copy = buffer / "staged.h5"
    began = time.monotonic_ns()
    bench.output(["dd", f"if={file}", f"of={copy}", "bs=4M", "conv=fsync", "status=none"])
    copied_ns = time.monotonic_ns() - began
    bench.drop_caches()
    outcome = bench.native(analyse(copy))
    copy.unlink()
    outcome["io_ns"][0] += copied_ns
    return outcome


def _parts(outcome) -> dict:
    """Seconds of I/O: of the first pass, of its batches but the first, of the second pass."""
    batches = [ns / 1e9 for ns in outcome["io_ns"]]
    first = batches[:len(batches) // 2]
    return {"all batches": sum(first), "batches after the first": sum(first[1:]),
            "read again": sum(batches[len(batches) // 2:]), "first batch": first[0]}


def _say(bench, work: Work, store: str, outcomes) -> None:
    parts = {system: _parts(outcome) for system, outcome in outcomes.items()}
    targets = {"all batches": (work.overall, work.overall_staged),
               "batches after the first": (work.later, work.later_staged), "read again": (work.later, 0)}
    name = f"{work.name}, {store}"
    for part, (over_direct, over_staged) in targets.items():
        seconds = {system: found[part] for system, found in parts.items()}
        detail = ", ".join(f"{system} {value:.2f} s" for system, value in seconds.items())
        ours = max(seconds["ours"], 1e-9)
        bench.at_least(f"{name}: {part}", seconds["direct"] / ours, over_direct, detail=detail)
        if over_staged:
            bench.at_least(f"{name}: {part}, over stage-in", seconds["staged"] / ours, over_staged)
    after = "batches after the first"
    told, learned = (max(parts[system][after], 1e-9) for system in ("told", "ours"))
    bench.at_least(f"{name}: {after}, learned against told", told / learned, LEARNED_AT_LEAST)
    first = ", ".join(f"{system} {found['first batch']:.3f} s" for system, found in parts.items())
    alone = [parts["direct"][part] / max(parts["bytes"][part], 1e-9) for part in targets]
    bench.note(f"{name}: first batch {first}; bytes alone {statistics.median(alone):.1f}x")
