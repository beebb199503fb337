# SPDX-License-Identifier: Apache-2.0
"""The programs of served.py, one function each; the working directory is theirs. What they print is compared.

Usage: served_programs.py NAME
"""

import multiprocessing
import os
import subprocess
import sys
import time
import zlib

import h5py
import numpy as np

# A file that has changed a moment ago is not kept: the next change might have the same time.
SETTLED_SECONDS = 0.1
SHAPE = (40, 30, 50)


def check(holds, text):
    if not holds:
        raise AssertionError(text)


def digest(array):
    array = np.ascontiguousarray(array)
    return f"{zlib.crc32(array.tobytes()):08x} {array.dtype} {array.shape}"


def field(seed, shape=SHAPE, dtype="i4"):
    return np.random.default_rng(seed).integers(0, 100, shape).astype(dtype)


def write(path, values, **how):
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=values, **{"chunks": (7, 11, 13), "compression": "gzip", **how})
    time.sleep(SETTLED_SECONDS)


def part_of(random, shape):
    """Boxes mostly; else steps, lists, single cells, nothing."""
    parts = []
    for size in shape:
        first, last = sorted(int(number) for number in random.integers(0, size + 1, 2))
        kind = random.integers(0, 12)
        if kind == 0:
            parts.append(int(random.integers(0, size)))
        elif kind == 1:
            parts.append(slice(first, last, int(random.integers(1, 4))))
        else:
            parts.append(slice(first, max(last, first + 1)) if kind < 11 else slice(first, last))
    if random.integers(0, 20) == 0:
        parts[0] = sorted({int(number) for number in random.integers(0, shape[0], 3)})
    return tuple(parts)


def selections():
    values = field(1)
    write("a", values, shuffle=True)
    random = np.random.default_rng(7)
    with h5py.File("a", "r") as file:
        dataset = file["x"]
        for _ in range(600):
            parts = part_of(random, SHAPE)
            expected = values[parts]
            check((dataset[parts] == expected).all(), f"{parts} reads as something else")
            if expected.size:
                check((file["x"].astype("f8")[parts] == expected).all(), f"{parts} converts to something else")
        everything = np.empty(SHAPE, "i4")
        dataset.read_direct(everything)
        check((everything == values).all(), "all of it reads as something else")
        wide = np.zeros((SHAPE[0], SHAPE[1], 2 * SHAPE[2]), "i4")
        dataset.read_direct(wide, np.s_[...], np.s_[:, :, 10:10 + SHAPE[2]])
        check((wide[:, :, 10:10 + SHAPE[2]] == values).all() and wide.sum() == values.sum(), "other memory changes")


KINDS = [
    {"dtype": "i1"}, {"dtype": ">i4"}, {"dtype": "u8"}, {"dtype": "f2"}, {"dtype": "f8", "fletcher32": True},
    {"dtype": "bool"}, {"dtype": "c8"}, {"dtype": "S5"}, {"dtype": [("a", "i4"), ("b", "f4")]},
    {"dtype": "i4", "compression": "lzf"}, {"dtype": "i4", "scaleoffset": 0, "compression": None},
    {"dtype": "i4", "maxshape": (None, None, None)}, {"dtype": "i4", "chunks": SHAPE},
    {"dtype": "i4", "chunks": (1, 1, 1)},
]


def datasets_of_many_kinds():
    with h5py.File("a", "w", userblock_size=512) as file:
        for number, kind in enumerate(KINDS):
            how = {"chunks": (7, 11, 13), "compression": "gzip", **kind}
            shape = SHAPE if how["chunks"] != (1, 1, 1) else (3, 2, 4)
            values = np.zeros(shape, how.pop("dtype"))
            if values.dtype.names:
                values["a"] = field(number, shape)
            else:
                values[...] = field(number, shape).astype(values.dtype)
            file.create_dataset(f"x{number}", data=values, **how)
        sparse = file.create_dataset("sparse", SHAPE, "i4", chunks=(7, 11, 13), compression="gzip", fillvalue=-3)
        sparse[20:25, 3] = 5
        file.create_dataset("text", data=["a", "bc"], chunks=(1,), compression="gzip")
    time.sleep(SETTLED_SECONDS)
    for _ in range(2):
        with h5py.File("a", "r") as file:
            for name in sorted(file):
                dataset = file[name]
                print(name, digest(dataset[...]) if name != "text" else list(dataset[...]))
                if dataset.ndim == 3:
                    print(name, digest(dataset[1:3, :2, 2:]), digest(dataset[-1]))


def three_libraries():
    import netCDF4  # noqa: PLC0415
    import tables  # noqa: PLC0415
    values = field(3)
    with netCDF4.Dataset("a", "w") as file:
        for name, size in zip("zyx", SHAPE, strict=True):
            file.createDimension(name, size)
        file.createVariable("x", "i4", ("z", "y", "x"), zlib=True, chunksizes=(7, 11, 13))[...] = values
        # netCDF4's own filters are found beside the connector.
        file.createVariable("w", "i4", ("z", "y", "x"), compression="zstd", chunksizes=(7, 11, 13))[...] = values
    # PyTables does not understand the references that netCDF4 makes.
    write("b", values)
    for _ in range(2):
        with netCDF4.Dataset("a") as first, h5py.File("a", "r") as second, tables.open_file("b") as third:
            for array in (first["x"], first["w"], second["x"], third.root.x):
                print(digest(np.asarray(array[5:30])), (np.asarray(array[...]) == values).all())


def read_alone(path="a"):
    program = f"import h5py, zlib; print(zlib.crc32(h5py.File({path!r}, 'r')['x'][...].tobytes()))"
    return subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout


def processes_share_chunks():
    values = field(4)
    write("a", values)
    for _ in range(3):
        print(read_alone())


def read_forked(number):
    with h5py.File("a", "r") as file:
        return zlib.crc32(file["x"][number:number + 9].tobytes())


def forked_readers():
    write("a", field(5))
    read_forked(0)
    context = multiprocessing.get_context("fork")
    with context.Pool(4) as pool:
        for _ in range(3):
            print(pool.map(read_forked, range(30)))


def write_elsewhere(seed, shape, sets_time_back):
    """Another process writes the field of that seed in place."""
    times = os.stat("a")
    writer = ("import h5py, numpy, sys; f = h5py.File('a', 'r+'); "
              f"f['x'][...] = numpy.random.default_rng({seed}).integers(0, 100, {shape}).astype('i4')")
    subprocess.run([sys.executable, "-c", writer], check=True)
    if sets_time_back:
        os.utime("a", ns=(times.st_atime_ns, times.st_mtime_ns))
    time.sleep(SETTLED_SECONDS)


def files_that_change_meanwhile():
    """Another process writes it in place, replaces it, and sets its old time back: nobody sees the old cells."""
    for turn in range(12):
        values = field(turn)
        how = turn % 3
        if how == 0:
            write("a", values)
        elif how == 1:
            write("b", values)
            os.replace("b", "a")
        else:
            write_elsewhere(turn, SHAPE, sets_time_back=True)
        for _ in range(2):
            with h5py.File("a", "r") as file:
                check((file["x"][...] == values).all(), f"turn {turn} reads as something else")
        check(int(read_alone()) == zlib.crc32(values.tobytes()), f"turn {turn} reads as something else elsewhere")


def a_file_that_is_also_written():
    """HDF5 holds what is written to a file that is open twice, and shows it to both."""
    values = field(6)
    write("a", values)
    with h5py.File("a", "r+") as writer, h5py.File("a", "r") as reader:
        for turn in range(20):
            values[turn, 3:9] = turn
            writer["x"][turn, 3:9] = turn
            check((reader["x"][...] == values).all(), f"turn {turn} reads as something else")
    time.sleep(SETTLED_SECONDS)
    for _ in range(2):
        with h5py.File("a", "r") as reader:
            check((reader["x"][...] == values).all(), "reads as something else afterwards")


def a_dataset_that_grows():
    with h5py.File("a", "w") as file:
        file.create_dataset("x", (0, 30), "i4", maxshape=(None, 30), chunks=(16, 30), compression="gzip")
    for turn in range(1, 8):
        with h5py.File("a", "r+") as file:
            file["x"].resize(turn * 5, axis=0)
            file["x"][(turn - 1) * 5:] = turn
        time.sleep(SETTLED_SECONDS)
        for _ in range(2):
            with h5py.File("a", "r") as file:
                print(digest(file["x"][...]))


def unfiltered_datasets():
    """Their bytes are in the tiers as they are."""
    with h5py.File("a", "w") as file:
        file.create_dataset("x", data=field(8))
        file.create_dataset("y", data=field(9), chunks=(7, 11, 13))
    time.sleep(SETTLED_SECONDS)
    for _ in range(2):
        with h5py.File("a", "r") as file:
            print(digest(file["x"][...]), digest(file["y"][...]))


def a_reader_that_stays():
    """HDF5 shares what it holds of a file among its opens: a later open of the same process reads the old cells, and
    must not keep them for others as the new ones."""
    for name, seed in (("a", 10), ("b", 11)):
        write(name, field(seed), compression=None, shuffle=True)
    with h5py.File("a", "r") as first:
        # Cells of a few chunks stay in HDF5's own cache for as long as the dataset is open.
        held = first["x"]
        held[...]
        print([int(held[plane, ::2, 3].sum()) for plane in range(0, 40, 7)])
        copy = ("import os; new = open('b', 'rb').read(); f = os.open('a', os.O_WRONLY); os.pwrite(f, new, 0); "
                "os.ftruncate(f, len(new))")
        subprocess.run([sys.executable, "-c", copy], check=True)
        time.sleep(SETTLED_SECONDS)
        with h5py.File("a", "r") as second:
            second["x"][...]
            second["x"][3:9]
    with h5py.File("a", "r") as anew:
        check((anew["x"][...] == field(11)).all(), "a new reader sees old cells")
    print(read_alone())


def chunks_without_content():
    """HDF5 leaves the program's memory alone where nothing was written."""
    with h5py.File("a", "w") as file:
        data = file.create_dataset("x", (40, 4096), "f8", chunks=(1, 4096), compression="gzip", fill_time="never")
        data[0, :8] = 1
    time.sleep(SETTLED_SECONDS)
    for _ in range(2):
        with h5py.File("a", "r") as file:
            memory = np.full((1, 4096), -3.0)
            file["x"].read_direct(memory, np.s_[5:6])
            print(digest(memory))


def files_of_one_name():
    """A file that is mounted into another one, and one behind a link, have the name of the first, elsewhere."""
    for number, folder in enumerate(("one", "two")):
        os.mkdir(folder)
        write(f"{folder}/a", field(20 + number))
    with h5py.File("one/a", "a") as file:
        file.create_group("mnt")
        file["link"] = h5py.ExternalLink("../two/a", "/x")
    time.sleep(SETTLED_SECONDS)
    os.chdir("one")
    outer = h5py.h5f.open(b"a", h5py.h5f.ACC_RDONLY)
    opened = h5py.File(outer)
    print(digest(opened["x"][...]), digest(opened["link"][...]))
    os.chdir("../two")
    inner = h5py.h5f.open(b"a", h5py.h5f.ACC_RDONLY)
    h5py.h5f.mount(outer, b"mnt", inner)
    print(digest(opened["mnt/x"][...]), digest(opened["x"][...]))


def cells_that_were_never_written():
    """HDF5 says of a dataset without storage, behind a user block, that its cells are in the file."""
    with h5py.File("a", "w", userblock_size=512) as file:
        file["x"] = field(1, (1024, 1024)) + 1
        file.create_dataset("empty", (512, 512), "i4")
    time.sleep(SETTLED_SECONDS)
    with h5py.File("a", "r") as file:
        file["x"][...]  # the bytes are in the tiers
        for _ in range(3):
            for box in boxes_with_ghosts((512, 512), (128, 128), (0, 0)):
                check(not file["empty"][box].any(), f"{box} has cells of something else")
                time.sleep(0.01)


def a_memory_file():
    """The driver reads another place than the file of that name."""
    write("a", field(30))
    with h5py.File("a", "r", driver="core", backing_store=False) as file:
        print(digest(file["x"][...]))
    with h5py.File("a", "r", driver="stdio") as file:
        print(digest(file["x"][...]))


def rows_in_boxes():
    """The file was there before. The program computes between its reads."""
    with h5py.File("rows.h5", "r") as file:
        dataset = file["x"]
        for row in range(0, dataset.shape[0], 256):
            for column in range(0, dataset.shape[1], 512):
                print(digest(dataset[row:row + 257, column:column + 513]))
                time.sleep(0.05)


def rows_of_large_chunks():
    """A row is in eight chunks of 2 MiB; by itself HDF5 keeps 8 MiB of a dataset."""
    values = field(7, (8, 4096), "f8")
    with h5py.File("large.h5", "w") as file:
        for name, how in (("x", {}), ("packed", {"compression": "gzip", "compression_opts": 1})):
            dataset = file.create_dataset(name, (512, 4096), "f8", chunks=(512, 512), **how)
            for number, row in enumerate(values):
                dataset[number] = row
            print(digest(dataset[:8]))
    with h5py.File("chosen.h5", "w", rdcc_nbytes=3 << 20) as file:
        print(file.create_dataset("x", (8, 4096), "f8", chunks=(8, 16)).id.get_access_plist().get_chunk_cache())
        chosen = file.create_dataset("y", (512, 4096), "f8", chunks=(512, 512), rdcc_nbytes=5 << 20)
        print(chosen.id.get_access_plist().get_chunk_cache())


GHOSTS = (("i4", (512, 768), (100, 128), (1, 1)), ("f8", (60, 64, 96), (60, 64, 8), (0, 0, 0)),
          ("f4", (96, 96, 96), (24, 24, 24), (2, 1, 3)))


def boxes_with_ghosts(shape, chunk, ghost):
    corners = np.stack(np.meshgrid(*(range(0, size, step) for size, step in zip(shape, chunk, strict=True)),
                                   indexing="ij"), -1).reshape(-1, len(shape))
    return [tuple(slice(max(0, int(at) - wide), min(size, int(at) + step + wide))
                  for at, wide, step, size in zip(corner, ghost, chunk, shape, strict=True)) for corner in corners]


def write_contiguous(path, values):
    with h5py.File(path, "w") as file:
        file["x"] = values
    time.sleep(SETTLED_SECONDS)


def read_every_fourth(arguments):
    path, boxes, first = arguments
    sums = []
    with h5py.File(path, "r") as file:
        for _ in range(2):
            for box in boxes[first::4]:
                sums.append(zlib.crc32(file["x"][box].tobytes()))
                time.sleep(0.02)
    return sums


def boxes_of_four_processes():
    """Rows of contiguous datasets, which the node gathers into boxes before these are read."""
    for number, (dtype, shape, chunk, ghost) in enumerate(GHOSTS):
        values = field(number, shape, dtype)
        write_contiguous("a", values)
        boxes = boxes_with_ghosts(shape, chunk, ghost)
        with multiprocessing.get_context("spawn").Pool(4) as pool:
            found = pool.map(read_every_fourth, [("a", boxes, first) for first in range(4)], 1)
        wanted = [[zlib.crc32(values[box].tobytes()) for box in boxes[first::4]] * 2 for first in range(4)]
        check(found == wanted, f"{shape} in {chunk} reads as something else")


def boxes_of_a_file_that_changes():
    """Chunks of the file from before a change are nobody's any more, also where its times are set back."""
    shape, chunk = (512, 512), (128, 128)
    boxes = boxes_with_ghosts(shape, chunk, (1, 1))
    for turn in range(8):
        values = field(turn, shape)
        if turn % 3 == 0:
            write_contiguous("b", values)
            os.replace("b", "a")
        else:
            write_elsewhere(turn, shape, sets_time_back=turn % 3 == 1)
        with h5py.File("a", "r") as file:
            for _ in range(2):
                for box in boxes:
                    check((file["x"][box] == values[box]).all(), f"turn {turn}, {box} reads as something else")
                    time.sleep(0.002)


def a_file_that_another_process_may_write():
    """Its bytes may be newer than its times."""
    values = field(12)
    write("a", values)
    opener = "import os, sys; f = os.open('a', os.O_RDWR); print(flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", opener], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        writer.stdout.readline()
        for _ in range(3):
            with h5py.File("a", "r") as file:
                check((file["x"][...] == values).all(), "reads as something else")
        writer.stdin.close()


def end_in_a_write(values, seconds, how):
    """A process writes other cells over all of the dataset, and is killed in the middle of its one write, perhaps after
    another thread has closed the descriptor; or that thread starts another program, which closes it."""
    with h5py.File("a", "r") as file:
        offset = file["x"].id.get_offset()
    program = "import os; os.close(%d); print(flush=True)"
    other_thread = {"killed": "", "closed": "threading.Timer(0.001, os.close, (f,)).start(); ",
                    "replaced": f"os.set_inheritable(f, True); program = [sys.executable, '-c', {program!r} % f]; "
                                f"threading.Timer({seconds}, os.execv, (sys.executable, program)).start(); "}[how]
    writer = ("import os, sys, threading, numpy; f = os.open('a', os.O_RDWR); "
              f"new = numpy.random.default_rng({values}).bytes(1 << 26); print(flush=True); {other_thread}"
              f"os.pwrite(f, new, {offset})")
    with subprocess.Popen([sys.executable, "-c", writer], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        if how == "replaced":
            process.stdout.readline()
        else:
            time.sleep(seconds)
            process.kill()
    return offset


def a_writer_that_is_killed():
    """Its bytes are there and its times are not: what readers get is what is in the file."""
    shape = (4096, 2048)
    write_contiguous("a", field(14, shape, "f8"))
    boxes = boxes_with_ghosts(shape, (512, 512), (0, 0))
    for turn, how in enumerate(("killed", "closed", "replaced", "killed")):
        with h5py.File("a", "r") as file:
            for _ in range(2):
                for box in boxes:
                    file["x"][box]
                    time.sleep(0.004)
        time.sleep(SETTLED_SECONDS)
        offset = end_in_a_write(turn, 0.003 * (turn + 1), how)
        with open("a", "rb") as raw:
            raw.seek(offset)
            values = np.frombuffer(raw.read(1 << 26), "f8").reshape(shape)
        # Before the node has buried a process, it knows of its open files alone.
        for pause in (0.3, 0) if how == "closed" else (0, 0, 0.3):
            time.sleep(pause)
            with h5py.File("a", "r") as file:
                for box in boxes:
                    check(file["x"][box].tobytes() == values[box].tobytes(), f"{how}, {box} is not what it was")


def first_boxes(count, pause):
    """The file was there before."""
    with h5py.File("a", "r") as file:
        for box in boxes_with_ghosts((1024, 1024), (256, 256), (1, 1))[:int(count)]:
            print(digest(file["x"][box]))
            time.sleep(float(pause))


def parts_of_gathered_boxes():
    """Halves of boxes that the node has gathered, and boxes that lie across two and four of them."""
    shape, size = (1024, 1024), 256
    values = field(13, shape, "f8")
    write_contiguous("a", values)
    halves = [np.s_[row:row + size, column:column + size // 2]
              for row in range(0, 1024, size) for column in range(0, 1024, size // 2)]
    across = [np.s_[row:row + size, column:column + size]
              for row in range(0, 1024 - size + 1, size // 2) for column in range(size // 2, 1024 - size, size)]
    with h5py.File("a", "r") as file:
        dataset = file["x"]

        def read(boxes):
            for box in boxes:
                check((dataset[box] == values[box]).all(), f"{box} reads as something else")
                time.sleep(0.01)

        whole = boxes_with_ghosts(shape, (size, size), (1, 1))
        read(whole)
        read(whole)
        time.sleep(0.5)
        for _ in range(3):
            read(halves)
            read(across)


def thirty_two_dimensions():
    """As many as HDF5 has. Boxes of 32 x 64 cells in each of 32 places, which lie far from each other."""
    shape = (1,) * 20 + (2,) * 10 + (64, 128)
    values = field(17, shape, "f8")
    write_contiguous("a", values)
    boxes = [(0,) * 20 + tuple(outer) + (slice(None),) * 5 + (slice(row, row + 32), slice(column, column + 64))
             for outer in np.ndindex(2, 2, 2, 2, 2) for row in (0, 32) for column in (0, 64)]
    with h5py.File("a", "r") as file:
        for _ in range(3):
            for box in boxes:
                check((file["x"][box] == values[box]).all(), f"{box} reads as something else")
                time.sleep(0.004)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
