# SPDX-License-Identifier: Apache-2.0
"""The programs of ahead.py, one function each; the working directory is theirs.

Usage: ahead_programs.py NAME
"""

import json
import os
import subprocess
import sys
import time

import h5py
import numpy as np

SETTLED_SECONDS = 0.1
SHAPE, CHUNK, BOX, GHOST = (1000, 1024), (64, 64), 128, 2
COMPUTE_SECONDS = 0.02
# Those that the node can unpack by itself, and one that it cannot.
KINDS = {
    "gzip": {"compression": "gzip"},
    "shuffled": {"compression": "gzip", "shuffle": True},
    "summed": {"compression": "gzip", "shuffle": True, "fletcher32": True},
    "sum": {"fletcher32": True},
    "big": {"compression": "gzip", "shuffle": True, "dtype": ">i4"},
    "growing": {"compression": "gzip", "maxshape": (None, None), "chunks": (64, 96)},
    "lzf": {"compression": "lzf"},
}


def field(seed):
    # Cells tell where they are, so that a chunk in a wrong place is seen.
    noise = np.random.default_rng(seed).integers(0, 50, SHAPE)
    return (noise + np.arange(SHAPE[0] * SHAPE[1]).reshape(SHAPE) * 64).astype("i4")


def steps():
    return np.arange(1 << 21, dtype="i4")


def columns():
    return np.arange(1 << 23, dtype="i4").reshape(4096, -1)


def boxes():
    for row in range(0, SHAPE[0], BOX):
        for column in range(0, SHAPE[1], BOX):
            yield tuple(slice(max(0, at - GHOST), min(size, at + BOX + GHOST))
                        for at, size in zip((row, column), SHAPE, strict=True))


def write(path, seed):
    with h5py.File(path, "w") as file:
        for number, (name, how) in enumerate(KINDS.items()):
            file.create_dataset(name, data=field(seed + number), **{"chunks": CHUNK, **how})
        sparse = file.create_dataset("sparse", SHAPE, "i4", chunks=CHUNK, compression="gzip", fillvalue=-7)
        sparse[:, :500] = field(seed)[:, :500]
    time.sleep(SETTLED_SECONDS)


def make():
    """Runs natively: the file was there before."""
    write("a.h5", 1)
    with h5py.File("steps.h5", "w") as file:
        file["x"] = steps()
    with h5py.File("columns.h5", "w") as file:
        file["x"] = columns()


def read_kind(file, name, expected, which=slice(None)):
    for box in list(boxes())[which]:
        found = file[name][box]
        assert (found == expected[box]).all(), f"{name} {box} reads as something else"
        time.sleep(COMPUTE_SECONDS)


def read_steps():
    """A KiB of every eight."""
    part = 1 << 17
    with h5py.File("steps.h5", "r") as file:
        for first in range(0, 1 << 21, part):
            space = file["x"].id.get_space()
            space.select_hyperslab((first,), (part // 2048,), (2048,), (256,))
            found = np.empty(part // 8, "i4")
            file["x"].id.read(h5py.h5s.create_simple(found.shape), space, found)
            expected = steps()[first:first + part].reshape(-1, 2048)[:, :256]
            assert (found == expected.ravel()).all(), f"the steps from {first} on read as something else"
            time.sleep(COMPUTE_SECONDS)


def calls_of_the_store():
    """(calls, bytes) of this process that the kernel has read for it."""
    with open("/proc/self/io", encoding="ascii") as file:
        lines = dict(line.split(": ") for line in file)
    return np.array([int(lines["syscr"]), int(lines["rchar"])])


def read_columns():
    """Four processes have a quarter of each row each: all blocks are everybody's."""
    ready, go = os.pipe()
    expected = columns()
    children = []
    for number in range(4):
        if children.append(os.fork()) or children[-1] != 0:
            continue
        os.close(go)
        with h5py.File("columns.h5", "r") as file:
            data = file["x"]
            os.read(ready, 1)
            before = calls_of_the_store()
            found = data[:, number * 512:(number + 1) * 512]
            calls = (calls_of_the_store() - before).tolist()
        assert (found == expected[:, number * 512:(number + 1) * 512]).all(), number
        with open(f"../calls.{number}", "w", encoding="ascii") as file:
            json.dump(calls, file)
        os._exit(0)
    os.close(ready)
    time.sleep(1)
    os.close(go)
    for child in children:
        assert os.waitpid(child, 0)[1] == 0


def fetch_too_much():
    """A part of a file that is larger than RAM: half of RAM takes its beginning, and nothing is read twice."""
    import ctypes  # noqa: PLC0415
    fetch = ctypes.CDLL(None).cairn_array_fetch
    fetch.argtypes = [ctypes.c_int, ctypes.c_uint64, ctypes.c_uint64]
    file = os.open("data", os.O_RDONLY)
    seconds = []
    for expected in [8 << 20] + [0] * 20:
        before = calls_of_the_store()
        began = time.monotonic()
        assert fetch(file, 0, 32 << 20) == 0
        seconds.append(time.monotonic() - began)
        _, read = calls_of_the_store() - before
        assert expected <= read < expected + (1 << 16), (expected, read)
    assert min(seconds) < 0.005, f"{seconds}: somebody is waited for, and nobody is there"


def read_all():
    with h5py.File("a.h5", "r") as file:
        for number, name in enumerate(KINDS):
            read_kind(file, name, field(1 + number))
        sparse = np.full(SHAPE, -7, "i4")
        sparse[:, :500] = field(1)[:, :500]
        read_kind(file, "sparse", sparse)


def read_rows():
    """Rows and not boxes: each is a part of its chunks."""
    expected = field(1)
    with h5py.File("a.h5", "r") as file:
        for row in range(SHAPE[0]):
            assert (file["gzip"][row] == expected[row]).all(), row
            time.sleep(COMPUTE_SECONDS / 16)


def rewrite():
    """Another process writes the file anew while this one reads it in boxes; the next open reads the new one."""
    with h5py.File("a.h5", "r") as file:
        read_kind(file, "gzip", field(1), slice(0, 20))
    subprocess.run([sys.executable, __file__, "make_other"], check=True)
    for _ in range(2):
        with h5py.File("a.h5", "r") as file:
            read_kind(file, "gzip", field(40))


def make_other():
    write("a.h5", 40)


def unfiltered_edges():
    """HDF5 can leave chunks at the edges unpacked, without a mark in their table."""
    creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    creation.set_chunk(CHUNK)
    creation.set_shuffle()
    library = h5py_library()
    assert library.H5Pset_chunk_opts(creation.id, 2) >= 0
    with h5py.File("b.h5", "w") as file:
        space = h5py.h5s.create_simple(SHAPE)
        made = h5py.h5d.create(file.id, b"x", h5py.h5t.STD_I32LE, space, creation)
        made.write(h5py.h5s.ALL, h5py.h5s.ALL, field(3))
    time.sleep(SETTLED_SECONDS)
    with h5py.File("b.h5", "r") as file:
        read_kind(file, "x", field(3))


def h5py_library():
    import ctypes  # noqa: PLC0415
    import glob  # noqa: PLC0415
    import os  # noqa: PLC0415
    path, = glob.glob(os.path.dirname(h5py.__file__) + ".libs/libhdf5-*")
    library = ctypes.CDLL(path)
    library.H5Pset_chunk_opts.argtypes = [ctypes.c_int64, ctypes.c_uint]
    return library


if __name__ == "__main__":
    globals()[sys.argv[1]]()
