#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""xarray's tests of netCDF files through netCDF4 and h5netcdf, and h5netcdf's own: natively, with the connector, and
under `cairn run`. No verdict differs."""

import sys

import stage

SUITES = (
    ("netCDF4", ["xarray.tests.test_backends", "-k", "TestNetCDF4Data or TestH5NetCDFData"]),
    ("h5py", ["h5netcdf"]),
)


def main():
    stage.need_plugin()
    python = stage.interpreter()
    status = 0
    for package, what in SUITES:
        status |= stage.compare_suites(
            package, lambda environment, directory, prefix, words=what: stage.pytest_verdicts(
                [*prefix, python], [f"--basetemp={directory}/base", "--pyargs", *words], directory, environment))
    return status


if __name__ == "__main__":
    sys.exit(main())
