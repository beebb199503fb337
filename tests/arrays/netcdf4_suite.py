#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""netCDF4-python's own tests, which its source distribution has, without the connector and with it.

The package is the wheel all the same. pip asks a source distribution what it needs before it hands it over, and this
one answers only where it finds netCDF's headers; it is shown stand-ins.
"""

import os
import shutil
import sys
import tarfile

import stage
import under_cairn

# The one that reads from a server elsewhere.
LEFT_OUT = ("test_dap.py",)
STAND_INS = {"netcdf.h": "nc_inq_compound\n", "netcdf_meta.h": "#define NC_HAS_PARALLEL 0\n", "hdf5.h": "",
             "H5public.h": '#define H5_VERS_INFO "HDF5 library version: 2.2.0"\n'}


def fetch(python, requirement, target):
    """Puts the tests of the source distribution at `target`. Returns: whether they could be had."""
    work = under_cairn.work_directory("arrays")
    include = work / "include"
    include.mkdir()
    for name, text in STAND_INS.items():
        (include / name).write_text(text)
    environment = under_cairn.clean_environment({"NETCDF4_DIR": str(work), "HDF5_DIR": str(work)})
    outcome = under_cairn.execute(
        [python, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps", "--no-binary", "netCDF4",
         "-d", work, requirement], work, stage.INSTALL_SECONDS, environment)
    archives = list(work.glob("*.tar.gz"))
    if outcome.status == 0 and archives:
        with tarfile.open(archives[0]) as archive:
            archive.extractall(work, filter="data")
        target.parent.mkdir(parents=True, exist_ok=True)
        os.rename(next(work.glob("*/test")), target)
    under_cairn.remove(work)
    return target.exists()


def main():
    stage.need_plugin()
    python = stage.interpreter()
    requirement = next(line for line in stage.packages() if line.startswith("netCDF4=="))
    tests = under_cairn.SOURCE / "build/arrays" / requirement
    if not tests.exists() and not fetch(python, requirement, tests):
        stage.skip(f"PyPI does not give the source distribution of {requirement}, which has the tests")

    def run(environment, directory, prefix):
        # The tests write beside themselves.
        copy = shutil.copytree(tests, directory / "test")
        files = sorted(path.name for path in tests.glob("test_*.py") if path.name not in LEFT_OUT)
        return stage.pytest_verdicts([*prefix, python], files, copy, environment)

    return stage.compare_suites("netCDF4", run)


if __name__ == "__main__":
    sys.exit(main())
