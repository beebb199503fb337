# SPDX-License-Identifier: Apache-2.0
"""What the tests of MPI share: the MPIs of the machine, programs built with them, and runs natively and under Cairn."""

import contextlib
import difflib
import fcntl
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import under_cairn  # noqa: E402

RUN_SECONDS = 100
# More ranks than processors, and a machine whose tests run as root.
OPEN_MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_hwloc_base_binding_policy": "none"}
# The word of each in `mpicc.WORD` and `mpirun.WORD`, as Debian calls them, and its environment.
FAMILIES = {"mpich": ("mpich", {}),
            "openmpi": ("openmpi", OPEN_MPI),
            # Open MPI has MPICH's library for files too, ROMIO.
            "openmpi_romio": ("openmpi", OPEN_MPI | {"OMPI_MCA_io": "romio321"})}
# What an MPI says of itself, and not the program.
NOISE = re.compile(r"yaksa|^=+$|^=   |^YOUR APPLICATION|^This typically|^Please see|^-+$|^$|process id|PID|pid "
                   r"|^\[|^Primary job|^MPI_ABORT|NOTE: invoking|may or may not see|^exactly when|^with errorcode")
TIMES = re.compile(r"\d+\.\d+")


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(under_cairn.SKIPPED)


def is_there(family):
    word = FAMILIES[family][0]
    return all(shutil.which(f"{tool}.{word}") for tool in ("mpicc", "mpicxx", "mpirun"))


def need(family):
    if not under_cairn.have_cairn():
        skip(f"{under_cairn.CAIRN} is not built")
    if not is_there(family):
        skip(f"no mpicc.{FAMILIES[family][0]} and mpirun.{FAMILIES[family][0]} here (./dev check installs them)")


@contextlib.contextmanager
def kept_folder():
    """The folder of programs that are built once. Tests of several families at the same time take turns."""
    folder = under_cairn.TOOLS / "mpi"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


def build(family, source, options=(), ending=""):
    """The program of one source file, built with the MPI's own compiler; remade when the source is newer."""
    with kept_folder() as folder:
        return build_in(folder / FAMILIES[family][0] / (source.stem + ending), FAMILIES[family][0], source, options)


def build_in(program, word, source, options):
    program.parent.mkdir(exist_ok=True)
    if program.exists() and program.stat().st_mtime > source.stat().st_mtime:
        return program
    compiler = f"mpicxx.{word}" if source.suffix == ".cc" else f"mpicc.{word}"
    fresh = program.with_suffix(".new")
    subprocess.run([compiler, "-O1", "-w", "-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX", *options, source, "-o", fresh],
                   check=True, capture_output=True, text=True)
    fresh.rename(program)
    return program


def command(family, ranks, program, *words):
    return [f"mpirun.{FAMILIES[family][0]}", "-n", str(ranks), program, *words]


def environment(family, **more):
    return under_cairn.clean_environment(FAMILIES[family][1] | more)


def told(outcome):
    """What the ranks printed, in an order that does not depend on who was first, without times and the MPI's noise."""
    lines = (outcome.output + "\n" + outcome.errors).splitlines()
    return sorted(TIMES.sub("N", line) + "\n" for line in lines if not NOISE.search(line)) + [f"{outcome}\n"]


def compare(family, line, work, says=True, settled=True, **more):
    """Runs a command line natively and under Cairn in a directory each. Returns the native outcome and the differences
    in what was printed (where it says the same twice) and what is stored (where that is settled), as text."""
    native, managed = work / "native", work / "cairn"
    native.mkdir()
    managed.mkdir()
    variables = environment(family, **more)
    alone = under_cairn.execute(line, native, RUN_SECONDS, variables)
    if alone.timed_out:  # ranks that wait for each other in loops, where others have the processors
        under_cairn.remove(native)
        native.mkdir()
        alone = under_cairn.execute(line, native, RUN_SECONDS, variables)
    buffered = under_cairn.execute(under_cairn.cairn_command(line, managed), managed, RUN_SECONDS, variables)
    words = [told(outcome) if says else told(outcome)[-1:] for outcome in (alone, buffered)]
    lines = list(difflib.unified_diff(*words, "native", "under Cairn", n=1))
    trees = [under_cairn.read_tree(folder) for folder in (native, managed)]
    for entry in [] if settled else [*trees[0].values(), *trees[1].values()]:
        entry.digest = ""
    return alone, "".join(lines + [entry + "\n" for entry in under_cairn.compare_trees(*trees)])
