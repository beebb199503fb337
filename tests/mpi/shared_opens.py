#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ranks that are not alike when they open a file come to the same end under Cairn as natively.

    shared_opens.py FAMILY
"""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import stage  # noqa: E402
import under_cairn  # noqa: E402

RANKS = 3
SCENES = ["directory", "names", "threads", "threads-open", "null", "late", "late-view"]
# ROMIO hangs natively where two threads set views in different orders.
WITHOUT_THREADS = {"mpich", "openmpi_romio"}
# Loads a library as Python modules do, whose last call is MPI's: it seems to come from somewhere else.
TAIL = """import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
file = ctypes.c_void_p()
library.begin()
place = ctypes.byref(file)
results = [library.open_file(b"tail", place), library.write_all(file), library.close_file(place)]
library.finish()
sys.exit(f"results: {results}" if any(results) else 0)
"""


def judge(ran, what):
    print(f"{what}: {ran}", flush=True)
    assert ran.status == 0, f"{what}: {ran}: {ran.output[-400:]}{ran.errors[-600:]}"


def both(family, line, work, what):
    """Natively and under Cairn, in a directory each, with a name beside it that leads there."""
    for folder in ("native", "cairn"):
        inside = work / what / folder
        inside.mkdir(parents=True)
        other = work / what / f"{folder}.other"
        other.symlink_to(inside / "named")
        words = [*line, other] if what == "names" else line
        ran = under_cairn.execute(words if folder == "native" else under_cairn.cairn_command(words, inside), inside,
                                  stage.RUN_SECONDS, stage.environment(family))
        judge(ran, f"{what}, {folder}")
    trees = [under_cairn.read_tree(work / what / folder) for folder in ("native", "cairn")]
    problems = under_cairn.compare_trees(*trees)
    assert not problems, problems


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in stage.FAMILIES:
        sys.exit(__doc__)
    family = sys.argv[1]
    stage.need(family)
    program = stage.build(family, HERE / "shared_opens.cc", ["-pthread"])
    work = under_cairn.work_directory(f"mpi-opens-{family}")
    for scene in SCENES:
        if not scene.startswith("threads") or family not in WITHOUT_THREADS:
            both(family, stage.command(family, RANKS, program, scene), work, scene)
    module = stage.build(family, HERE / "tail_calls.c", ["-shared", "-fPIC", "-O2"], ".so")
    both(family, stage.command(family, RANKS, sys.executable, "-c", TAIL, module), work, "tail")
    under_cairn.remove(work)
    return 0


if __name__ == "__main__":
    sys.exit(main())
