# SPDX-License-Identifier: Apache-2.0
"""What the tests of the HDF5 connector share: where it is, the interpreter with the packages, and its environment."""

import fcntl
import os
import re
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import under_cairn  # noqa: E402

FOLDER = under_cairn.BUILD / "lib/cairn/hdf5"
PLUGIN = FOLDER / "libcairn_hdf5.so"
DRIVER = FOLDER / "libcairn_vfd.so"
MAKER = under_cairn.SOURCE / "tools/hdf5/library.sh"
INSTALL_SECONDS = 600
MAKE_SECONDS = 600
SUITE_SECONDS = 400


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(under_cairn.SKIPPED)


def need_plugin():
    if not PLUGIN.exists():
        skip("the build has no HDF5 connector, for want of HDF5's headers (./dev build brings them)")


def made_hdf5(mpi=None):
    """The folder of an HDF5 that loads connectors, with its headers and tests; made where it is missing. `mpi`: the
    word of one of Debian's MPIs, by which it reads in parallel. Skips the test where it cannot be had."""
    folder = under_cairn.BUILD.parent / ("hdf5_" + (mpi or "alone"))
    made_by = folder / "made_by"
    # Tests of several kinds at a time take turns.
    with open(folder.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made_by.exists() or made_by.read_bytes() != MAKER.read_bytes():
            outcome = under_cairn.execute([MAKER, folder, mpi or ""], under_cairn.SOURCE, MAKE_SECONDS)
            if outcome.status != 0:
                skip(f"no HDF5 of our own: {outcome.errors[-300:]}")
    return folder


def packages():
    return [line for line in (HERE / "packages.txt").read_text().splitlines() if not line.startswith("#")]


def interpreter():
    """build/venv's Python with all packages in the wanted versions; skips the test where they cannot be had."""
    outcome = under_cairn.execute([under_cairn.SOURCE / "dev", "venv", *packages()], under_cairn.SOURCE,
                                  INSTALL_SECONDS)
    python = under_cairn.SOURCE / "build/venv/bin/python"
    if outcome.status != 0 or not python.exists():
        skip(f"build/venv has not all of {' '.join(packages())}")
    return python


def environment(connector=True, plugin_path=True, **more):
    """A program's environment: with the connector chosen, with its folder in the path and not chosen, or neither."""
    variables = under_cairn.clean_environment({"PYTHONDONTWRITEBYTECODE": "1", **more})
    for name in ("HDF5_VOL_CONNECTOR", "HDF5_PLUGIN_PATH"):
        variables.pop(name, None)
    if connector:
        variables["HDF5_VOL_CONNECTOR"] = "cairn"
    if connector or plugin_path:
        variables["HDF5_PLUGIN_PATH"] = str(FOLDER)
    return variables


def readelf(plugin, *words):
    return subprocess.run(["readelf", *words, plugin], check=True, capture_output=True, text=True).stdout


def compare_suites(package, run, is_every_way=False):
    """Runs a package's own tests natively, under `cairn run`, where HDF5 finds the connector by itself and the tests'
    files are buffered, and, where $CAIRN_ARRAY_WAYS is `all` (the soak), with the connector alone.
    `run(environment, directory, prefix)` answers {test: verdict}; `prefix` begins its command. Returns: the exit
    status."""
    verdicts = {}
    ways = {"natively": "native", "with the connector": "cairn", "under Cairn": "cairn"}
    if not is_every_way and os.environ.get("CAIRN_ARRAY_WAYS") != "all":
        del ways["with the connector"]
    for way, expected in ways.items():
        directory = under_cairn.work_directory("arrays")
        is_chosen = way == "with the connector"
        prefix = under_cairn.cairn_command([], directory, ram="256M") if way == "under Cairn" else []
        variables = environment(is_chosen, plugin_path=is_chosen, CAIRN_EXPECT=expected, CAIRN_EXPECT_OF=package,
                                PYTHONPATH=str(HERE), TMPDIR=str(directory))
        verdicts[way] = run(variables, directory, prefix)
        under_cairn.remove(directory)
    native = verdicts.pop("natively")
    status = 0
    for way, found in verdicts.items():
        differing = sorted(test for test in native.keys() | found.keys() if native.get(test) != found.get(test))
        for test in differing:
            print(f"{test}: {native.get(test)} natively, {found.get(test)} {way}")
        counts = {verdict: list(found.values()).count(verdict) for verdict in sorted(set(found.values()))}
        print(f"{package} {way}: {len(found)} tests, {counts}, {len(differing)} differ from those natively")
        status |= 1 if differing or not found else 0
    return status


def pytest_verdicts(command, what, directory, environment):
    """{test: verdict} of a run of pytest by `command`, a Python, which ends unless the expected connector is in use."""
    report = directory / "report.xml"
    outcome = under_cairn.execute(
        [*command, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "expect_connector",
         f"--junitxml={report}", *what], directory, SUITE_SECONDS, environment)
    if outcome.timed_out or not report.exists():
        print(outcome, outcome.output[-3000:], outcome.errors[-3000:], sep="\n")
        return {}
    return junit_verdicts(report)


def junit_verdicts(path):
    """{test: verdict} of a report that pytest has written."""
    verdicts = {}
    for case in re.split(r"<testcase ", path.read_text())[1:]:
        names = dict(re.findall(r'(classname|name)="([^"]*)"', case.split(">", 1)[0]))
        found = re.search(r"<(failure|error|skipped)\b", case)
        verdicts[f"{names['classname']}.{names['name']}"] = found.group(1) if found else "passed"
    return verdicts


def play_scenes(scenes, play):
    """The exit status of a test whose scenes, or those that the command line names, are given to `play` one by one."""
    status = 0
    for scene in scenes:
        if len(sys.argv) > 1 and scene.__name__ not in sys.argv[1:]:
            continue
        began = time.monotonic()
        try:
            play(scene)
            print(f"{scene.__name__}: ok ({time.monotonic() - began:.1f} s)", flush=True)
        except (AssertionError, OSError, subprocess.SubprocessError) as problem:
            print(f"{scene.__name__}: FAILED: {problem}", flush=True)
            status = 1
    return status
