# SPDX-License-Identifier: Apache-2.0
"""Traces of real parallel programs, read again from a throttled disk: what is fetched ahead in time, what in vain.

CAIRN_TRACES names a directory with the traces; `cairn trace replay --files` plays the reads of each, one process for
all ranks in the order of the trace, with an open description for each rank and file, and with a pause for each MiB
that stands for computation. If the files of a trace do not fit on the disk, its first accesses are played; that of the
testbed takes all of them with CAIRN_TESTBED_HDD_SIZE=20G. RAM holds a quarter of the files. What coverage and accuracy
are stands in harness/fetches.py.

The targets are those of a model in which a rank demands a page after the other, also within one access: longer
accesses are played in calls of such a page. How openPMD does with calls as they were recorded, of 32 MiB, is noted
beside: what a single call reads cannot be fetched ahead of it.
"""
import dataclasses
import os
import pathlib
import shutil

from harness import fetches, references
from harness.errors import BenchError, Skip

MIB = 1 << 20
# 64 KiB take 2 ms, then, of which the disk needs 0.6 when it reads neighbours together.
PAUSE_PER_MIB = 0.032
RAM_MIN = 64 * MIB


@dataclasses.dataclass(frozen=True)
class Trace:
    title: str
    coverage: float  # at least, of a hundred
    accuracy: float
    call: str  # a page of the model
    files_gib: float = 0  # of the whole trace
    first: int = 0  # accesses, where these do not fit
    has_long_accesses: bool = False


TRACES = {
    "hpc/vpic_hdf5_192r": Trace("VPIC, 192 ranks", 90, 76, "512K", files_gib=15.9, first=10_000),
    "hpc/openpmd_read_1024r": Trace("openPMD, 1024 ranks", 51, 99, "64K", has_long_accesses=True),
    "hpc/dlio_unet3d_1r": Trace("UNet3D", 85, 85, "4M", files_gib=14.9, first=1000),
}


def run(bench):
    if bench.quick:
        path = bench.scratch / "tiny.csv"
        _write_tiny(path)
        _measure(bench, bench.directory("played"), path, Trace("four ranks", 0, 0, "64K", has_long_accesses=True))
        return
    directory = os.environ.get("CAIRN_TRACES", "")
    if not directory:
        raise Skip("no traces of real programs: CAIRN_TRACES=DIRECTORY names them")
    found = references.traces(pathlib.Path(directory))
    if not any(name in found for name in TRACES):
        names = ", ".join(name.removeprefix("hpc/") + ".csv.zst" for name in TRACES)
        raise BenchError(f"CAIRN_TRACES: {directory} holds none of {names}")
    hdd = bench.testbed("hdd")
    for name, trace in TRACES.items():
        if name in found:
            _measure(bench, hdd / "played", found[name], trace)
        else:
            bench.note(f"{trace.title}: no {name.removeprefix('hpc/')}.csv in {directory}")


def _measure(bench, files, path, trace: Trace) -> None:
    fits = shutil.disk_usage(files.parent).free > 1.02 * trace.files_gib * (1 << 30)
    what = ["--reads", *([] if fits else ["--first", trace.first])]
    made = bench.native(_replay(bench, files, path, "--make", *what))["made_bytes"]
    ram = max(made // 4, RAM_MIN)
    pace = ["--pace-mib", 0 if bench.quick else PAUSE_PER_MIB]
    words = _replay(bench, files, path, "--verify", *what, *pace)
    played, ahead = fetches.run(bench, [*words, "--call", trace.call], files, ram)
    if played["read_bytes"] == 0:
        raise BenchError(f"{path}: nothing of it was played")
    detail = f"{ahead}; I/O {played['io_seconds']:.3g} of {played['seconds']:.3g} s; " \
             f"{played['reads']} reads of {made / (1 << 30):.2f} GiB" + ("" if fits else ", the first ones")
    bench.at_least(f"{trace.title}: coverage", ahead.coverage(), trace.coverage, "%", detail=detail)
    bench.at_least(f"{trace.title}: accuracy", ahead.accuracy(), trace.accuracy, "%")
    if trace.has_long_accesses:
        _, whole = fetches.run(bench, words, files, ram)
        bench.note(f"{trace.title}, calls as recorded: coverage {whole.coverage():.1f} %, "
                   f"accuracy {whole.accuracy():.1f} %; {whole}")
    shutil.rmtree(files)


def _replay(bench, files, path, *options) -> list:
    return [bench.cairn, "trace", "replay", "--files", files, "--json", *options, path]


def _write_tiny(path) -> None:
    """Four ranks read a file each, and one of all."""
    ranks, reads, block = 4, 40, 65536
    with open(path, "w", encoding="ascii") as file:
        file.write("t,rank,file,op,off,len\n")
        for at in range(reads):
            for rank in range(ranks):
                file.write(f"{at / 100},{rank},{rank},0,{at * block},{block}\n")
                file.write(f"{at / 100},{rank},{ranks},0,{(rank * reads + at) * 3 * block},{2 * block}\n")
