# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest, and a function for those who run without it: the run ends at once unless the package that
$CAIRN_EXPECT_OF names opens its files by the connector that $CAIRN_EXPECT names."""

import os
import sys
import tempfile

from connector_name import any_open_file, connector_of, library_of


def connector_in_use(package):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "file")
        if package == "h5py":
            import h5py  # noqa: PLC0415
            file = h5py.File(path, "w")
        elif package == "tables":
            import tables  # noqa: PLC0415
            file = tables.open_file(path, "w")
        else:
            import netCDF4  # noqa: PLC0415
            file = netCDF4.Dataset(path, "w")
        library = library_of(package)
        found = connector_of(library, any_open_file(library))
        file.close()
    return found


def need_connector():
    package, expected = os.environ["CAIRN_EXPECT_OF"], os.environ["CAIRN_EXPECT"]
    found = connector_in_use(package)
    if found != expected:
        print(f"{package} opens files by {found}, not by {expected}", file=sys.stderr)
        os._exit(99)


def pytest_sessionstart():
    need_connector()
