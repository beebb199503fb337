# SPDX-License-Identifier: Apache-2.0
"""The montage programs make a mosaic of star fields on a throttled disk: none, the kernel's and ours read ahead.

Fields are projected, their overlaps compared, backgrounds corrected and all added up, by Debian's own programs, two
processes at a time; all intermediate images are files, written by one program and read by others (the pipeline of the
papers on prefetching for workflows). RAM holds a quarter of all of it. The systems are those of
harness/side_by_side.py. The time of I/O is the sum over all processes inside the calls that read and write, as
`cairn status` has counted it.

The time of I/O is judged where the disk decides, with the fast projection (mProjectPP); the run time against that with
everything in RAM where computing takes longer than the disk, with the general projection (mProject), which computes
for some 50 times as long.
"""
import dataclasses
import json
import pathlib
import shutil

from harness import side_by_side
from harness.errors import Skip
from harness.paper_report import interpreter

PROGRAMS = ("mImgtbl", "mMakeHdr", "mProjectPP", "mProject", "mOverlaps", "mDiffExec", "mFitExec",
            "mBgModel", "mBackground", "mAdd", "mShrink")
PROCESSES = 2
MIB = 1 << 20
# The bytes for a field's pixel: raw 4; projected and corrected 2 x 2 x 8, differences about a half of that, mosaic
# somewhat less than once 2 x 8.
BYTES_PER_PIXEL = 4 + 32 + 16 + 12
# Images that two processes work on, and the node's own memory.
PROGRAM_BYTES = 192 * MIB
SIZE = 800  # a field's width and height in pixels


@dataclasses.dataclass(frozen=True)
class Case:
    """fields: columns and rows of the sky. goals: what side_by_side.judge() is to judge."""
    name: str
    projector: str
    fields: tuple
    goals: dict


CASES = (Case("mosaic", "mProjectPP", (5, 5), {"io_goal": 2}),
         Case("mosaic, computing", "mProject", (3, 3), {"bound_goal": 1.10}))


def run(bench):
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        raise Skip(f"needs {missing[0]} (apt-get install montage)")
    python = interpreter("numpy", install=not bench.quick)
    if not python:
        raise Skip("needs numpy in build/venv (./dev venv numpy)")
    directory = bench.directory("hdd") if bench.quick else bench.testbed("hdd")
    for case in CASES:
        program = _program(bench, python, directory, case)
        side_by_side.judge(bench, program, side_by_side.compare(bench, program), **case.goals)


def _program(bench, python: str, directory: pathlib.Path, case) -> side_by_side.Program:
    columns, rows = (2, 2) if bench.quick else case.fields
    size = 96 if bench.quick else SIZE
    raw, work, plan = directory / "raw", directory / "work", bench.scratch / "plan.json"
    shutil.rmtree(raw, ignore_errors=True)
    raw.mkdir()
    bench.native(bench.python_worker(python, "star_fields", raw, "--columns", columns, "--rows", rows, "--size", size))
    fields = sorted(raw.iterdir())
    plan.write_text(json.dumps(stages([field.name for field in fields], case.projector)))

    def prepare():
        shutil.rmtree(work, ignore_errors=True)
        for name in (work, work / "projected", work / "differences", work / "corrected"):
            name.mkdir()

    def results(is_first: bool) -> dict:
        products = sorted(path for path in work.rglob("*") if path.is_file()
                          and (is_first or path.parent == work))
        return side_by_side.digests(work, [path.relative_to(work) for path in products])

    data_bytes = columns * rows * size * size * BYTES_PER_PIXEL
    return side_by_side.Program(
        case.name, bench.python_worker(python, "pipeline", work, plan, "--processes", PROCESSES), directory, fields,
        data_bytes, max(data_bytes // 4, MIB), PROGRAM_BYTES, prepare, results)


def stages(fields: list, projector: str) -> list:
    """The tasks of the programs, stage by stage, in a directory beside that of the fields."""
    # mFitExec keeps every image that it has read: it gets few of them at a time.
    count = max(PROCESSES, len(fields) // 2)
    parts = range(count)

    def alone(name: str, *commands):
        return [{"name": f"{name} {words[0]}", "commands": [list(words)]} for words in commands]

    def shared(name: str, commands):
        return [{"name": name, "commands": [list(words) for words in commands]}]

    return [
        *alone("fields", ("mImgtbl", "../raw", "raw.tbl"), ("mMakeHdr", "raw.tbl", "region.hdr")),
        *shared("project", ((projector, f"../raw/{name}", f"projected/{name}", "region.hdr") for name in fields)),
        *alone("projected", ("mImgtbl", "projected", "projected.tbl"),
               ("mOverlaps", "projected.tbl", "overlaps.tbl")),
        {"name": "split overlaps", "split": "overlaps.tbl", "parts": count},
        *shared("differences", (("mDiffExec", "-p", "projected", f"overlaps.tbl.{part}", "region.hdr", "differences")
                                for part in parts)),
        *shared("fits", (("mFitExec", f"overlaps.tbl.{part}", f"fits.tbl.{part}", "differences") for part in parts)),
        {"name": "join fits", "join": "fits.tbl", "parts": count},
        *alone("model", ("mBgModel", "projected.tbl", "fits.tbl", "corrections.tbl")),
        # It looks for the name in the table as it is given.
        {**shared("correct", (("mBackground", "-t", name, f"../corrected/{name}", "../projected.tbl",
                               "../corrections.tbl") for name in fields))[0], "directory": "projected"},
        *alone("mosaic", ("mImgtbl", "corrected", "corrected.tbl"),
               ("mAdd", "-p", "corrected", "corrected.tbl", "region.hdr", "mosaic.fits"),
               ("mShrink", "mosaic.fits", "overview.fits", "4")),
    ]
