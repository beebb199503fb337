# SPDX-License-Identifier: Apache-2.0
"""What the tests of the HDF5 connector share: where it is, the interpreter with the packages, and its environment."""

import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import under_cairn  # noqa: E402

FOLDER = under_cairn.BUILD / "lib/cairn/hdf5"
PLUGIN = FOLDER / "libcairn_hdf5.so"
INSTALL_SECONDS = 600
SUITE_SECONDS = 400


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(under_cairn.SKIPPED)


def need_plugin():
    if not PLUGIN.exists():
        skip("the build has no HDF5 connector, for want of HDF5's headers (./dev build brings them)")


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


def readelf(*words):
    return subprocess.run(["readelf", *words, PLUGIN], check=True, capture_output=True, text=True).stdout


def compare_suites(package, run):
    """Runs a package's own tests without the connector and with it, by `run(environment, directory)`, which answers
    {test: verdict}. Returns: the exit status."""
    verdicts = []
    for connector, expected in ((False, "native"), (True, "cairn")):
        directory = under_cairn.work_directory("arrays")
        verdicts.append(run(environment(connector, plugin_path=connector, CAIRN_EXPECT=expected,
                                        CAIRN_EXPECT_OF=package, PYTHONPATH=str(HERE)), directory))
        under_cairn.remove(directory)
    native, cairn = verdicts
    differing = sorted(test for test in native.keys() | cairn.keys() if native.get(test) != cairn.get(test))
    for test in differing:
        print(f"{test}: {native.get(test)} without the connector, {cairn.get(test)} with it")
    counts = {verdict: list(cairn.values()).count(verdict) for verdict in sorted(set(cairn.values()))}
    print(f"{package}: {len(cairn)} tests, {counts}, {len(differing)} differ from those without the connector")
    return 1 if differing or not cairn else 0


def pytest_verdicts(python, what, directory, environment):
    """{test: verdict} of a run of pytest, which is ended unless the expected connector is in use."""
    report = directory / "report.xml"
    outcome = under_cairn.execute(
        [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "expect_connector",
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
