# SPDX-License-Identifier: Apache-2.0
"""The programs of driver.py, one function each; the working directory is theirs. Whether HDF5 uses the driver is the
caller's choice, by variables or by $CAIRN_DRIVER_BY_NAME.

Usage: driver_programs.py NAME [ARGUMENT...]
"""

import ctypes
import errno
import multiprocessing
import os
import resource
import shutil
import signal
import struct
import subprocess
import sys
import time

import h5py
import numpy as np
from connector_name import library_of

CELLS = np.arange(1 << 20, dtype="i4").reshape(1024, 1024)


def say(*words, end="\n"):
    print(*words, end=end, flush=True)


def wait_for_order():
    """The test looks at the store, or does something to the node, before it lets the program go on."""
    if not sys.stdin.readline():
        raise AssertionError("the test has gone")


def chosen_by_name():
    """A list of file access properties with the driver, which no variable has chosen."""
    # What h5py.File sets, which decides about the file's format.
    properties = h5py._hl.files.make_fapl(None)
    library = library_of("h5py")
    library.H5Pset_driver_by_name.argtypes = [ctypes.c_int64, ctypes.c_char_p, ctypes.c_char_p]
    if library.H5Pset_driver_by_name(properties.id, b"cairn", None) < 0:
        raise AssertionError("HDF5 does not load the driver")
    return properties


def create(name):
    if "CAIRN_DRIVER_BY_NAME" not in os.environ:
        return h5py.File(name, "w")
    return h5py.File(h5py.h5f.create(name.encode(), h5py.h5f.ACC_TRUNC, fapl=chosen_by_name()))


def tell_driver():
    """Whether the driver is in use, and whether the library of hooks has been loaded for it."""
    library = library_of("h5py")
    library.H5FDis_driver_registered_by_name.argtypes = [ctypes.c_char_p]
    with open("/proc/self/maps", encoding="utf-8") as maps:
        is_loaded = "libcairn_preload" in maps.read()
    say("driver", library.H5FDis_driver_registered_by_name(b"cairn"), "hooks", int(is_loaded))


def write_all():
    """Files of several kinds, in which nothing depends on the time."""
    draw = np.random.default_rng(5)
    with create("plain.h5") as file:
        file["cells"] = CELLS
        tell_driver()
    with create("packed.h5") as file:
        cells = file.create_dataset("cells", (300, 400), "f8", chunks=(64, 64), compression="gzip", shuffle=True,
                                    maxshape=(None, 400), track_times=False)
        for row in range(0, 300, 7):
            cells[row:row + 7] = draw.integers(0, 9, (min(7, 300 - row), 400))
        cells.resize(150, 0)
        file.create_group("a/b/c").attrs["text"] = "x" * 700
    with create("small.h5") as file:
        for number in range(300):
            file[f"group/{number}"] = np.full(number, number)
    with h5py.File("small.h5", "r+") as file:
        for number in range(0, 300, 3):
            del file[f"group/{number}"]
        file["later"] = "a text"


def read_all():
    with h5py.File("plain.h5", "r") as file:
        assert (file["cells"][:] == CELLS).all()
    with h5py.File("packed.h5", "r") as file:
        say(float(file["cells"][:].sum()), file["cells"].shape)
    with h5py.File("small.h5", "r") as file:
        say(sum(int(cells[:].sum()) for cells in file["group"].values()), len(file["group"]))
    tell_driver()


def write_slowly():
    """Says what it has done, and waits before it goes on."""
    with h5py.File("slow.h5", "w") as file:
        file["cells"] = CELLS
        say("written")
        wait_for_order()
        file.flush()
        say("flushed")
        wait_for_order()
        file["cells"][:] = -CELLS
        say("changed")
        wait_for_order()
    say("closed")
    wait_for_order()


def go_on_after_a_death():
    with h5py.File("deaths.h5", "w") as file:
        cells = file.create_dataset("cells", CELLS.shape, "i4")
        for number in range(8):
            cells[128 * number:128 * (number + 1)] = CELLS[128 * number:128 * (number + 1)]
            say("written")
            wait_for_order()
            assert (cells[:128 * (number + 1)] == CELLS[:128 * (number + 1)]).all(), "other cells after a death"
    with h5py.File("deaths.h5", "r") as file:
        assert (file["cells"][:] == CELLS).all()


def failure_of(call):
    try:
        call()
    except Exception as problem:  # noqa: BLE001: what it is, is the question
        text = str(problem)
        for varying in ("time = ", "buf = ", "file descriptor = "):
            if varying in text:
                head, tail = text.split(varying, 1)
                text = head + varying + "..." + tail[tail.index(","):]
        return f"{type(problem).__name__} {getattr(problem, 'errno', None)} {text}"
    return "no error"


def fail():
    """What h5py raises for each of these, with the number and the text that come from HDF5."""
    with h5py.File("good.h5", "w") as file:
        file["cells"] = CELLS[:100]
    shutil.copy("good.h5", "cut.h5")
    os.truncate("cut.h5", 1000)
    with open("text", "w", encoding="utf-8") as file:
        file.write("no HDF5" * 300)
    os.mkdir("directory")
    os.symlink("loop", "loop")
    shutil.copy("good.h5", "closed.h5")
    os.chmod("closed.h5", 0)
    shutil.copy("good.h5", "unwritable.h5")
    os.chmod("unwritable.h5", 0o444)
    for name, mode in (("missing", "r"), ("missing", "r+"), ("missing/below", "w"), ("text/below", "r"), ("loop", "r"),
                       ("directory", "r+"), ("directory", "r"), ("text", "r"), ("cut.h5", "r"), ("good.h5", "x"),
                       ("closed.h5", "r"), ("unwritable.h5", "r+"), ("x" * 300, "w")):
        say(name[:20], mode, failure_of(lambda: h5py.File(name, mode)))  # noqa: B023: called at once
    with h5py.File("good.h5", "r+"):
        other = subprocess.run([sys.executable, __file__, "open_locked"], capture_output=True, text=True, check=True)
        say(other.stdout, end="")
    library = library_of("h5py")
    library.H5Fdelete.argtypes = [ctypes.c_char_p, ctypes.c_int64]
    say("delete", library.H5Fdelete(b"good.h5", 0), os.path.exists("good.h5"))


def open_locked():
    say("locked", failure_of(lambda: h5py.File("good.h5", "r+")))


def pass_the_limit():
    """A file that may not grow: the size is the process's own to bound."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))
    file = h5py.File("limited.h5", "w")
    cells = file.create_dataset("cells", CELLS.shape, "i4")
    say(failure_of(lambda: cells.write_direct(CELLS)))
    os._exit(0)


def fill_the_disk():
    """Says what failed first: a write, the flush or the close."""
    file = h5py.File("full.h5", "w")

    def write():
        file["cells"] = np.arange(1 << 20, dtype="f8")

    for call in (write, file.flush, file.close):
        text = failure_of(call)
        if text != "no error":
            say(text)
            break
    os._exit(0)


def sum_in_child(number):
    with h5py.File("forked.h5", "r") as file:
        return int(file["cells"][number * 100:(number + 1) * 100].sum())


def fork():
    """The parent has a file open for writing when its children come, and they read what it has written."""
    file = h5py.File("forked.h5", "w", locking=False)
    file["cells"] = CELLS
    file.flush()
    child = os.fork()
    if child == 0:
        # The inherited file.
        os._exit(0 if (file["cells"][500:600] == CELLS[500:600]).all() else 1)
    assert os.waitpid(child, 0)[1] == 0, "a child reads other cells from its parent's file"
    file["more"] = CELLS[:200]
    file.close()
    with multiprocessing.get_context("fork").Pool(3) as pool:
        sums = pool.map_async(sum_in_child, range(10)).get(timeout=60)
    assert sums == [int(CELLS[n * 100:(n + 1) * 100].sum()) for n in range(10)], sums
    with h5py.File("forked.h5", "r+") as again:
        assert (again["more"][:] == CELLS[:200]).all()
        again["more"][:] = 7
    subprocess.run([sys.executable, "-c", "pass"], check=True)


def refuse_children():
    """From now on fork() fails, as where there are too many processes: a filter of system calls answers EAGAIN."""
    libc = ctypes.CDLL(None, use_errno=True)
    no_new_privileges, set_filter, filter_mode = 38, 22, 2
    load, jump_if_equal, answer = 0x20, 0x15, 0x06
    clone, clone3, fail, allow = 56, 435, 0x00050000 | errno.EAGAIN, 0x7fff0000
    steps = ((load, 0, 0, 0), (jump_if_equal, 2, 0, clone), (jump_if_equal, 1, 0, clone3), (answer, 0, 0, allow),
             (answer, 0, 0, fail))
    text = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(text))
    if libc.prctl(no_new_privileges, 1, 0, 0, 0) != 0 or libc.prctl(set_filter, filter_mode, program, 0, 0) != 0:
        raise AssertionError(os.strerror(ctypes.get_errno()))


def fork_in_vain():
    """A file is open for writing when its child cannot be made, and is closed afterwards."""
    with h5py.File("unborn.h5", "w", locking=False) as file:
        file["cells"] = CELLS[0]
        refuse_children()
        try:
            os.fork()
        except BlockingIOError:
            say("no child")
    say("closed")
    wait_for_order()


def several_libraries():
    """netCDF looks at the first bytes of a file by itself, before HDF5 does, and so past the driver."""
    import netCDF4  # noqa: PLC0415
    import tables  # noqa: PLC0415
    with netCDF4.Dataset("by_netcdf", "w") as file:
        file.createDimension("x", 1000)
        file.createVariable("cells", "i4", ("x",))[:] = CELLS[0, :1000]
    with netCDF4.Dataset("by_netcdf", "r") as file:
        assert (file["cells"][:] == CELLS[0, :1000]).all()
    with h5py.File("by_netcdf", "r") as first, tables.open_file("by_netcdf", "r") as second:
        assert (first["cells"][:] == CELLS[0, :1000]).all()
        assert (second.root.cells[:] == CELLS[0, :1000]).all()
    with tables.open_file("by_tables", "w") as file:
        file.create_array("/", "cells", CELLS)
        file.flush()
    with h5py.File("by_tables", "r+") as file:
        file["cells"][0] = -1
    with tables.open_file("by_tables", "r") as file:
        assert (file.root.cells[0] == -1).all() and (file.root.cells[1] == CELLS[1]).all()
    # A file as a whole, past HDF5.
    shutil.copyfile("by_tables", "copy")
    with h5py.File("copy", "r") as file:
        assert (file["cells"][1:] == CELLS[1:]).all()
    tell_driver()


def rename_and_remove():
    """Names are the kernel's."""
    with h5py.File("one.h5", "w") as file:
        file["cells"] = CELLS[:10]
        os.rename("one.h5", "two.h5")
        file["more"] = 1
    with h5py.File("two.h5", "r") as file:
        os.remove("two.h5")
        assert (file["cells"][:] == CELLS[:10]).all() and file["more"][()] == 1
    try:
        h5py.File("two.h5", "r")
    except FileNotFoundError as problem:
        assert problem.errno == errno.ENOENT
    else:
        raise AssertionError("a removed file is there")


def interrupted():
    """Signals come all the time, and their handlers are Python's."""
    count = 0

    def count_one(*_):
        nonlocal count
        count += 1

    signal.signal(signal.SIGALRM, count_one)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    end = time.monotonic() + 2
    with h5py.File("interrupted.h5", "w") as file:
        cells = file.create_dataset("cells", CELLS.shape, "i4")
        while time.monotonic() < end:
            cells[:] = CELLS
            assert (cells[:] == CELLS).all()
    signal.setitimer(signal.ITIMER_REAL, 0)
    assert count > 100, count


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
