# SPDX-License-Identifier: Apache-2.0
"""The programs of scenes.py, one function each; the working directory is theirs.

Usage: array_programs.py NAME
"""

import concurrent.futures
import ctypes
import multiprocessing
import os
import shutil
import sys

import h5py
import numpy as np
from connector_name import any_open_file, connector_of, library_of, path_of

EXPECTED = os.environ["CAIRN_EXPECT"]


def check(holds, text):
    if not holds:
        raise AssertionError(text)


def check_connector(package, opened):
    """`opened` is an object of h5py or PyTables; of netCDF4's, which keep their ids to themselves, any open file."""
    library = library_of(package)
    if package == "h5py":
        found = connector_of(library, opened.id.id)
    elif package == "tables":
        found = connector_of(library, opened._v_objectid)
    else:
        found = connector_of(library, any_open_file(library))
    check(found == EXPECTED, f"{package} opens files by {found}, not by {EXPECTED}")


def three_libraries_read_each_other():
    import netCDF4  # noqa: PLC0415
    import tables  # noqa: PLC0415
    values = np.arange(24, dtype="i4").reshape(4, 6)
    with h5py.File("h5py", "w") as file:
        file["values"] = values
        check_connector("h5py", file["values"])
    with netCDF4.Dataset("netCDF4", "w") as file:
        file.createDimension("x", 4)
        file.createDimension("y", 6)
        file.createVariable("values", "i4", ("x", "y"), zlib=True)[:] = values
        check_connector("netCDF4", file)
    with tables.open_file("tables", "w") as file:
        file.create_array("/", "values", values)
        check_connector("tables", file.root)
    check(len({path_of(package) for package in ("h5py", "netCDF4", "tables")}) == 3, "not three libraries")
    # All nine at once.
    opened = [(h5py.File(name, "r"), netCDF4.Dataset(name, "r"), tables.open_file(name, "r"))
              for name in ("h5py", "netCDF4", "tables")]
    for by_h5py, by_netcdf, by_tables in opened:
        check((by_h5py["values"][1:3, 2:] == values[1:3, 2:]).all(), "h5py reads something else")
        check((by_netcdf["values"][1:3, 2:] == values[1:3, 2:]).all(), "netCDF4 reads something else")
        check((by_tables.root.values[1:3, 2:] == values[1:3, 2:]).all(), "tables reads something else")
    for files in opened:
        for file in files:
            file.close()


def sum_of_rows(part):
    with h5py.File("forked", "r") as file:
        check_connector("h5py", file)
        return int(file["values"][part * 100:(part + 1) * 100].sum())


def forked_processes_read():
    values = np.arange(400 * 50).reshape(400, 50)
    with h5py.File("forked", "w") as file:
        file.create_dataset("values", data=values, chunks=(10, 50), compression="gzip")
    # The parent has the file open when it forks, and reads it again afterwards.
    with h5py.File("forked", "r") as file:
        check(file["values"][5, 5] == values[5, 5], "the parent reads something else")
        with multiprocessing.get_context("fork").Pool(2) as pool:
            sums = pool.map_async(sum_of_rows, range(4)).get(timeout=60)
        check(sum(sums) == values.sum(), "the children read something else")
        check((file["values"][:] == values).all(), "the parent reads something else after the fork")


def a_missing_file_is_a_missing_file():
    for mode in ("r", "r+"):
        try:
            h5py.File("no-such-file", mode)
        except FileNotFoundError:
            continue
        raise AssertionError("a missing file was opened")
    with h5py.File("there", "w"):
        pass
    try:
        h5py.File("there", "x")
    except FileExistsError:
        return
    raise AssertionError("a file was made that was there")


def what_is_no_hdf5_file_says_so():
    with open("text", "w", encoding="utf-8") as file:
        file.write("no HDF5\n" * 1000)
    check(not h5py.is_hdf5("text"), "text is HDF5")
    try:
        h5py.File("text", "r")
    except OSError as problem:
        check("file signature not found" in str(problem), f"the reason is lost: {problem}")
        return
    raise AssertionError("text was opened")


def filters_of_netcdf4_work():
    import netCDF4  # noqa: PLC0415
    values = np.arange(5000, dtype="i4")
    with netCDF4.Dataset("filters", "w") as file:
        file.createDimension("x", len(values))
        for name in ("zlib", "zstd", "bzip2", "blosc_lz4"):
            file.createVariable(name, "i4", ("x",), compression=name)[:] = values
    with netCDF4.Dataset("filters") as file:
        for name, variable in file.variables.items():
            check(variable.filters()[name.split("_")[0]], f"{name} is no filter of the variable")
            check((variable[:] == values).all(), f"what {name} has compressed reads as something else")
    with h5py.File("filters", "r") as file:
        check_connector("h5py", file)


def links_mounts_and_copies_work():
    with h5py.File("other", "w") as other:
        other["far"] = [7, 8, 9]
    with h5py.File("linked", "w") as file:
        file["group/values"] = np.arange(10)
        file["hard"] = file["group/values"]
        file["soft"] = h5py.SoftLink("/group/values")
        file["external"] = h5py.ExternalLink("other", "far")
        file.copy("group", "copied")
        file.move("copied/values", "moved")
        file["group"].attrs["reference"] = file["hard"].ref
        file["text"] = np.array(["a", "bc"], dtype=h5py.string_dtype())
        file["named"] = np.dtype("f8")
        for name in ("hard", "soft", "moved"):
            check((file[name][:] == np.arange(10)).all(), f"{name} reads as something else")
        check(list(file["external"][:]) == [7, 8, 9], "the external link leads elsewhere")
        check(file["external"].file.filename.endswith("other"), "the external dataset is in another file")
        check(file[file["group"].attrs["reference"]] == file["hard"], "the reference leads elsewhere")
        check(list(file["text"].asstr()[:]) == ["a", "bc"], "strings read as something else")
        seen = []
        file.visititems(lambda name, _: seen.append(name))
        check("group/values" in seen and "named" in seen, f"the walk finds {seen}")
        with h5py.File("other", "r") as other:
            file.create_group("mounted")
            h5py.h5f.mount(file.id, b"mounted", other.id)
            check(list(file["mounted/far"][:]) == [7, 8, 9], "the mounted file reads as something else")
            check_connector("h5py", file["mounted/far"])
            h5py.h5f.unmount(file.id, b"mounted")
            other.copy("far", file, "brought")
            check(list(file["brought"][:]) == [7, 8, 9], "the copy out of another file is something else")
        file.flush()
        file["hard"].refresh()
        check((file["hard"][:] == np.arange(10)).all(), "what was refreshed reads as something else")


def random_selections_are_equal():
    random = np.random.default_rng(431)
    values = random.integers(0, 1 << 30, (40, 30, 20), dtype="i4")
    with h5py.File("random", "w") as file:
        file.create_dataset("chunked", data=values, chunks=(7, 11, 5), compression="gzip", shuffle=True)
        file.create_dataset("plain", data=values)
    with h5py.File("random", "r") as file:
        check_connector("h5py", file["chunked"])
        for _ in range(300):
            parts = tuple(slice(*sorted(random.integers(0, size + 1, 2)), int(random.integers(1, 4)))
                          for size in values.shape)
            for name in ("chunked", "plain"):
                check((file[name][parts] == values[parts]).all(), f"{name}{parts} reads as something else")
            check((file["chunked"].astype("f8")[parts] == values[parts]).all(), "conversion gives something else")


def xarray_reads_with_both_engines():
    import xarray  # noqa: PLC0415
    values = np.arange(60.0).reshape(3, 4, 5)
    written = xarray.Dataset({"values": (("time", "y", "x"), values)}, attrs={"title": "a field"})
    for writer in ("netcdf4", "h5netcdf"):
        written.to_netcdf(writer, engine=writer, encoding={"values": {"zlib": True, "chunksizes": (1, 4, 5)}})
        for reader in ("netcdf4", "h5netcdf"):
            with xarray.open_dataset(writer, engine=reader) as read:
                check(read.load().equals(written), f"{reader} reads something else than {writer} wrote")
    with h5py.File("netcdf4", "r") as file:
        check_connector("h5py", file)


def a_fifth_library_is_refused():
    """Copies of one library are several libraries to the dynamic linker, and to the connector."""
    opened = []
    for number in range(4):
        copy = shutil.copy(path_of("h5py"), f"libhdf5-copy{number}.so")
        library = ctypes.CDLL(os.path.abspath(copy))
        library.H5Fcreate.restype = ctypes.c_int64
        library.H5Fcreate.argtypes = [ctypes.c_char_p, ctypes.c_uint, ctypes.c_int64, ctypes.c_int64]
        opened.append(library.H5open() >= 0 and library.H5Fcreate(f"file{number}".encode(), 2, 0, 0) >= 0)
    # h5py's own has the first of four places.
    check(opened == [True, True, True, False], f"these of four copies may use the connector: {opened}")
    with h5py.File("own", "w") as file:
        check_connector("h5py", file)


def a_connector_that_is_only_found_is_not_used():
    with h5py.File("native", "w") as file:
        file["values"] = np.arange(10)
        check_connector("h5py", file["values"])
    try:
        h5py.File("no-such-file", "r")
    except FileNotFoundError:
        # HDF5 has asked the connector now whether it can open the file.
        with h5py.File("native", "r") as file:
            check_connector("h5py", file)


def a_connector_may_be_told_what_is_below():
    """By the string behind its name: the native one, and itself above the native one."""
    script = ("import h5py, sys; f = h5py.File(sys.argv[1], 'w'); f['x'] = [1, 2]; f['y'] = f['x']; f.copy('x', 'z');"
              "f.close(); assert list(h5py.File(sys.argv[1], 'r')['z'][:]) == [1, 2]")
    for number, text in enumerate(("under_vol=0;under_info={}", "under_vol=0", "under_vol=431",
                                   "under_vol=431;under_info={under_vol=0;under_info={}}")):
        os.environ["HDF5_VOL_CONNECTOR"] = f"cairn {text}"
        status = os.spawnl(os.P_WAIT, sys.executable, sys.executable, "-c", script, f"file{number}")
        check(status == 0, f"with '{text}' the program ends with {status}")


def threads_read():
    values = np.arange(80 * 100).reshape(80, 100)
    with h5py.File("threads", "w") as file:
        file.create_dataset("values", data=values, chunks=(8, 100))
    with h5py.File("threads", "r") as file, concurrent.futures.ThreadPoolExecutor(8) as pool:
        check_connector("h5py", file)
        rows = list(pool.map(lambda row: file["values"][row % 80], range(800)))
        check(all((row == values[i % 80]).all() for i, row in enumerate(rows)), "a thread reads something else")


if __name__ == "__main__":
    globals()[sys.argv[1]]()
