# SPDX-License-Identifier: Apache-2.0
"""Collective MPI-IO, strided records of four ranks in one file on a parallel file system, direct and under Cairn.

With each MPI of the machine. A record has 47008 bytes. A file is written, read again by the same job, and read by a job
whose node has nothing of it, both times without the kernel's caches. A time is that of the slowest rank in its calls,
from the open to the close.
"""
import hashlib
import pathlib
import shutil

from harness.errors import BenchError, Skip

MIB = 1 << 20
RANKS = 4
REPOSITORY = pathlib.Path(__file__).resolve().parent.parent.parent
SOURCE = REPOSITORY / "bench/workers/mpi/records.cc"
# More ranks than processors, and a machine whose benchmarks run as root.
ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
               "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_hwloc_base_binding_policy": "none"}


def run(bench):
    families = [name for name in ("mpich", "openmpi")
                if shutil.which(f"mpicxx.{name}") and shutil.which(f"mpirun.{name}")]
    if not families:
        raise Skip("needs an MPI: mpich and libmpich-dev, or openmpi-bin and libopenmpi-dev")
    directory = bench.directory("pfs") if bench.quick else bench.testbed("pfs")
    bench.environment.update(ENVIRONMENT)
    for family in families:
        folder = directory / family
        folder.mkdir()
        program = bench.scratch / f"records.{family}"
        bench.output([f"mpicxx.{family}", "-O2", "-w", "-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX", SOURCE, "-o",
                      program])
        _measure(bench, family, folder, program)
        shutil.rmtree(folder)


def _measure(bench, family: str, folder: pathlib.Path, program: pathlib.Path) -> None:
    records, rounds = (4, 2) if bench.quick else (64, 24)

    def words(name, way):
        return [f"mpirun.{family}", "-n", RANKS, program, folder / name, way, records, rounds]

    def direct():
        written = bench.native(words("direct", "write"))
        bench.drop_caches()
        read = bench.native(words("direct", "read"))
        return _outcome(folder / "direct", {"write": written, "read again": read, "read first": read})

    def ours():
        with bench.node("--ram", 1024 * MIB, name=f"bench-mpi-{family}") as node:
            written = node.run(words("ours", "write"), folder)
            bench.drop_caches()
            again = node.run(words("ours", "read"), folder)
            node.drain()
        bench.drop_caches()
        with bench.node("--ram", 1024 * MIB, name=f"bench-mpi-{family}") as node:
            first = node.run(words("ours", "read"), folder)
        return _outcome(folder / "ours", {"write": written, "read again": again, "read first": first})

    def gathered():
        with bench.node("--ram", 1024 * MIB, name=f"bench-mpi-{family}") as node:
            written = node.run(["env", "CAIRN_MPI=off", *words("gathered", "write")], folder)
            again = node.run(["env", "CAIRN_MPI=off", *words("gathered", "read")], folder)
        return _outcome(folder / "gathered", {"write": written, "read again": again})

    pairs = bench.in_turns(ours, direct)
    own_way = gathered()
    bench.note(f"{family}: under Cairn, but gathered as the MPI does it: write {own_way['write'] / 1e6:.4g} ms, "
               f"read again {own_way['read again'] / 1e6:.4g} ms")
    if len({side["digest"] for side in [own_way, *(side for pair in pairs for side in pair)]}) != 1:
        raise BenchError(f"{family}: the files are not the same")
    for name, target in (("write", 5), ("read again", 5), ("read first", 0.9)):
        bench.speed_up(f"{family}: {name}", pairs, lambda side, key=name: side[key] / 1e6, target, unit="ms")


def _outcome(file: pathlib.Path, results: dict) -> dict:
    """Nanoseconds of each part, and what the file is like."""
    for name, result in results.items():
        if result["wrong"]:
            raise BenchError(f"{name}: {result['wrong']} calls have read something else")
    with open(file, "rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    file.unlink()
    return {name: result["ns"] for name, result in results.items()} | {"digest": digest}
