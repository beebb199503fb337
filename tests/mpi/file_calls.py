#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program of our own on MPI's files, natively and under Cairn: the same words, the same files.

    file_calls.py FAMILY
"""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import stage  # noqa: E402
import under_cairn  # noqa: E402


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in stage.FAMILIES:
        sys.exit(__doc__)
    family = sys.argv[1]
    stage.need(family)
    program = stage.build(family, HERE / "file_calls.cc")
    words = ["no-collective-requests"] if family == "openmpi_romio" else []
    failed = 0
    for ranks in (1, 4):
        work = under_cairn.work_directory(f"mpi-{ranks}")
        alone, problem = stage.compare(family, stage.command(family, ranks, program, *words), work)
        if alone.status != 0:
            problem = f"natively: {alone}: {alone.output[-400:]}{alone.errors[-400:]}"
        failed += bool(problem)
        print(f"FAILED with {ranks} ranks, kept {work}:\n{problem}" if problem else f"passed with {ranks} ranks:\n" +
              "".join(stage.told(alone)), flush=True)
        if not problem:
            under_cairn.remove(work)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
