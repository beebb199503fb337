# SPDX-License-Identifier: Apache-2.0
"""Climate fields on a throttled disk are read again in every phase: none, the kernel's and ours read ahead.

The fields are real, from Debian's ferret-datasets, repeated until they are four times as large as RAM. Tools: the nco
operators take means, fields, years and regions out of winds, two at a time; they compute little, so that the disk
decides, and the time of their I/O is the sum over all processes inside the calls that read and write, as
`cairn status` has counted it. Patches: four processes (workers/climate_patches.py) each read their part of the oceans
in four phases and compute for longer than the disk needs for what all of them read; they measure their own calls. The
systems are those of harness/side_by_side.py.
"""
import json
import pathlib
import shutil

from harness import side_by_side
from harness.errors import Skip
from harness.paper_report import interpreter
from testbed_parts import devices

DATA = pathlib.Path("/usr/share/ferret-vis/data")
WINDS, OCEANS = DATA / "monthly_navy_winds.cdf", DATA / "levitus_climatology.cdf"
PROGRAMS = ("ncrcat", "ncra", "ncks")
MONTHS = 132  # in WINDS
PROCESSES = 2
MIB = 1 << 20
# Both fields of a record of the oceans, all four patches.
RECORD_BYTES = 2 * 20 * 180 * 360 * 4
WINDOW = 2
# Computing time, in units of the disk's time for the reads of all processes in a window.
COMPUTE_PART = 1.3
TOOL_BYTES = 192 * MIB
PATCHES_BYTES = 384 * MIB


def run(bench):
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        raise Skip(f"needs {missing[0]} (apt-get install nco)")
    if not WINDS.exists() or not OCEANS.exists():
        raise Skip(f"needs {WINDS} (apt-get install ferret-datasets)")
    python = interpreter("h5py", install=not bench.quick)
    if not python:
        raise Skip("needs h5py in build/venv (./dev venv h5py)")
    directory = bench.directory("hdd") if bench.quick else bench.testbed("hdd")
    _tools(bench, python, directory)
    _patches(bench, python, directory)


def _tools(bench, python: str, directory: pathlib.Path) -> None:
    buffer, work = directory / "tools", directory / "tools/work"
    buffer.mkdir()
    winds = buffer / "winds.nc"
    copies = 1 if bench.quick else 24
    bench.output(["ncrcat", "-h", "-6", *[WINDS] * copies, winds])
    plan = bench.scratch / "plan.json"
    plan.write_text(json.dumps(_phases(copies * MONTHS)))
    # The winds, and each of their fields in a file; what else is written is small.
    data_bytes = 2 * winds.stat().st_size
    program = _program(bench, "tools", bench.python_worker(python, "pipeline", work, plan, "--processes", PROCESSES),
                       work, [winds], data_bytes, TOOL_BYTES)
    side_by_side.judge(bench, program, side_by_side.compare(bench, program), io_goal=2)
    shutil.rmtree(buffer)


def _phases(records: int) -> list:
    """-h: without a history, which would hold the time of day."""
    both = ("UWND", "VWND")
    winds = "../winds.nc"

    def phase(name: str, *commands):
        return {"name": name, "commands": [[words[0], "-h", *words[1:]] for words in commands]}

    return [
        phase("means", *(("ncra", "-v", name, winds, f"mean.{name}.nc") for name in both)),
        phase("fields", *(("ncrcat", "-v", name, winds, f"{name}.nc") for name in both)),
        phase("years", *(("ncra", "--mro", "-d", "TIME,,,12,12", f"{name}.nc", f"years.{name}.nc") for name in both)),
        # A quarter of the time: to read so little of each record is what takes longest.
        phase("regions", *(("ncks", "-d", f"TIME,,{records // 4}", "-d", f"FNOCY,{first},{first + 10}", winds,
                            f"region.{first}.nc") for first in (20, 40))),
        phase("variability", *(("ncra", "-y", "rms", f"{name}.nc", f"rms.{name}.nc") for name in both)),
        phase("extremes", *(("ncra", "-y", kind, "-v", "UWND", winds, f"{kind}.nc") for kind in ("min", "max"))),
    ]


def _patches(bench, python: str, directory: pathlib.Path) -> None:
    buffer, work = directory / "patches", directory / "patches/work"
    buffer.mkdir()
    oceans, source = buffer / "oceans.nc", bench.scratch / "oceans.nc"
    records = 3 if bench.quick else 48
    bench.output(["ncks", "-h", "-4", OCEANS, source])
    bench.native(bench.python_worker(python, "climate_patches", oceans, "--make", source, "--records", records))
    seconds = WINDOW * RECORD_BYTES / devices.kind("hdd").read_rate
    command = bench.python_worker(python, "climate_patches", oceans, "--output", work, "--window", WINDOW,
                                  "--compute-ms", 1 if bench.quick else round(1000 * COMPUTE_PART * seconds))
    program = _program(bench, "patches", command, work, [oceans], oceans.stat().st_size, PATCHES_BYTES)
    side_by_side.judge(bench, program, side_by_side.compare(bench, program), io_goal=2,
                       bound_goal=1.10)


def _program(bench, name: str, command: list, work: pathlib.Path, inputs: list, data_bytes: int,
             program_bytes: int) -> side_by_side.Program:
    def prepare():
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()

    def results(_is_first: bool) -> dict:
        return side_by_side.digests(work, sorted(path.name for path in work.iterdir()))

    return side_by_side.Program(name, command, work.parent, inputs, data_bytes, max(data_bytes // 4, MIB),
                                program_bytes, prepare, results)
