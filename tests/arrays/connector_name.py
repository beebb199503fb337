# SPDX-License-Identifier: Apache-2.0
"""Which connector an object of HDF5 belongs to, asked of the HDF5 library that a package has brought."""

import ctypes
import re

# Where the wheel of each package keeps its libraries, in lower case.
FOLDERS = {"h5py": "h5py.libs", "netCDF4": "netcdf4.libs", "tables": "tables.libs"}


def path_of(package):
    """The path of a package's libhdf5, which the package has been imported to load."""
    with open("/proc/self/maps", encoding="utf-8") as file:
        paths = {line.split(None, 5)[5].strip() for line in file if "libhdf5-" in line}
    found = [path for path in paths if re.search(f"/{FOLDERS[package]}/", path, re.IGNORECASE)]
    if len(found) != 1:
        raise AssertionError(f"{package} has {found} for an HDF5 of its own")
    return found[0]


def library_of(package):
    library = ctypes.CDLL(path_of(package))
    library.H5VLget_connector_name.argtypes = [ctypes.c_int64, ctypes.c_char_p, ctypes.c_size_t]
    library.H5VLget_connector_name.restype = ctypes.c_ssize_t
    return library


def connector_of(library, identifier):
    """The name of the connector of an open file, group or dataset."""
    name = ctypes.create_string_buffer(64)
    if library.H5VLget_connector_name(identifier, name, len(name)) < 0:
        raise AssertionError("HDF5 does not say which connector an object has")
    return name.value.decode()


def any_open_file(library):
    """The id of a file that is open in a library."""
    all_files, kind_file = 0x1F, 1  # H5F_OBJ_ALL, H5F_OBJ_FILE
    identifiers = (ctypes.c_int64 * 1)()
    library.H5Fget_obj_ids.argtypes = [ctypes.c_int64, ctypes.c_uint, ctypes.c_size_t,
                                       ctypes.POINTER(ctypes.c_int64)]
    library.H5Fget_obj_ids.restype = ctypes.c_ssize_t
    if library.H5Fget_obj_ids(all_files, kind_file, 1, identifiers) < 1:
        raise AssertionError("no file is open in the library")
    return identifiers[0]
