# SPDX-License-Identifier: Apache-2.0
"""The programs of seen.py, one function each; the working directory is theirs.

Usage: seen_programs.py NAME
"""

import shutil
import subprocess
import sys
import time

import h5py
import numpy as np

SETTLED_SECONDS = 0.1
ROWS, COLUMNS, CHUNK = 2048, 1024, 256
PACKED, PACKED_CHUNK = (64, 64, 64), (16, 32, 64)


def tiles(ghost=0):
    for row in range(0, ROWS, CHUNK):
        for column in range(0, COLUMNS, CHUNK):
            yield tuple(slice(max(0, at - ghost), min(size, at + CHUNK + ghost))
                        for at, size in ((row, ROWS), (column, COLUMNS)))


def make():
    """Runs natively: the file was there before."""
    random = np.random.default_rng(1)
    with h5py.File("a.h5", "w", userblock_size=512) as file:
        file["fields/rows"] = np.arange(ROWS * COLUMNS, dtype="f4").reshape(ROWS, COLUMNS)
        file.create_dataset("packed", data=random.integers(0, 9, PACKED).astype("i4"), chunks=PACKED_CHUNK,
                            shuffle=True, compression="gzip")
        file.create_dataset("plain_chunks", data=np.zeros((64, 64)), chunks=(8, 64))
        file["small"] = np.arange(100)
        file["text"] = ["a", "b"]
        file["later"] = np.zeros(1 << 18)
        file.create_dataset("empty", (1 << 20,), "f8")
    with open("plain.txt", "w", encoding="ascii") as file:
        file.write("no HDF5 file" * 200)


def read_all():
    """Two processes' worth of boxes, and of each kind of dataset one read."""
    with h5py.File("a.h5", "r") as file:
        rows = file["fields/rows"]
        for _ in range(2):
            for box in tiles(ghost=2):
                rows[box]
                time.sleep(0.01)
        packed = file["packed"]
        for _ in range(3):
            packed[...]
            packed[3:20, 5:9, :]
        packed[::2, 0, 0]
        packed.astype("f8")[...]
        for name in ("plain_chunks", "small", "text", "empty"):
            file[name][...]


def read_strips():
    """In boxes of another shape than those of the other programs."""
    with h5py.File("a.h5", "r") as file:
        rows = file["fields/rows"]
        for _ in range(3):
            for row in range(0, ROWS, 128):
                for column in range(0, COLUMNS, 512):
                    rows[row:row + 128, column:column + 512]
                    time.sleep(0.005)


def read_by_address():
    """HDF5 has no path of an object that is opened by its address, and would look for one everywhere."""
    with h5py.File("a.h5", "r") as file:
        reference = file["packed"].ref
        print(file[reference][0].sum())


def write_and_read():
    with h5py.File("a.h5", "r+") as file:
        file["later"][:100] = 5
        print(file["later"][:10].sum())


def read_both(file, times):
    for _ in range(times):
        file["packed"][...]
        file["fields/rows"][:CHUNK, :CHUNK]


def read_beside_a_writer():
    """Another process may write the file, and does not."""
    opener = "import os, sys; f = os.open('a.h5', os.O_RDWR); print(flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", opener], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        writer.stdout.readline()
        with h5py.File("a.h5", "r") as file:
            read_both(file, 3)
        writer.stdin.close()


def read_over_a_change():
    """Another process changes the file while this one has it open."""
    with h5py.File("a.h5", "r") as file:
        read_both(file, 1)
        subprocess.run([sys.executable, "-c", "import os; os.utime('a.h5')"], check=True)
        read_both(file, 2)


def end_by_itself():
    """No dataset is closed by the program."""
    file = h5py.File("a.h5", "r")
    for _ in range(2):
        file["packed"][...]
    globals()["kept"] = (file, file["packed"])


def open_for_each_read():
    """Each time another dataset to the connector; and one that outlives its file."""
    with h5py.File("a.h5", "r") as file:
        for number in range(500):
            file["packed"][number % 64]
    file = h5py.h5f.open(b"a.h5", h5py.h5f.ACC_RDONLY)
    dataset = h5py.Dataset(h5py.h5d.open(file, b"packed"))
    dataset[0]
    file.close()
    for _ in range(10):
        dataset[0]


def two_boxes():
    """Too few for anything to be learned of them. The rows come while it computes."""
    with h5py.File("a.h5", "r") as file:
        rows = file["fields/rows"]
        for column in (0, CHUNK):
            rows[:CHUNK, column:column + CHUNK]
            time.sleep(1)
        print(rows[0, 0])


def hundreds():
    with h5py.File("many.h5", "w") as file:
        for number in range(600):
            file[f"d{number}"] = np.arange(4)
    time.sleep(SETTLED_SECONDS)
    with h5py.File("many.h5", "r") as file:
        print(sum(int(file[f"d{number}"][...].sum()) for number in range(600)))


def burst():
    """The node hears of all of them within a moment, while the files are closed."""
    names = [f"burst{number}.h5" for number in range(4)]
    for name in names:
        with h5py.File(name, "w") as file:
            for number in range(250):
                file.create_dataset(f"d{number}", data=np.arange(64), chunks=(16,), compression="gzip")
    time.sleep(SETTLED_SECONDS)
    files = [h5py.File(name, "r") for name in names]
    for file in files:
        for number in range(250):
            file[f"d{number}"][:3]
    for file in files:
        file.close()


def come_and_go():
    """HDF5 gives each the place of the one before."""
    with h5py.File("comes.h5", "w") as file:
        for number in range(20):
            file[f"d{number}"] = np.arange(1000 + number)
            file[f"d{number}"][:2]
            del file[f"d{number}"]
        for size in (5000, 6000):
            file["again"] = np.arange(size)
            for _ in range(3):
                file["again"][:2]
                time.sleep(2 * SETTLED_SECONDS)
            del file["again"]


def two_of_one_name():
    with h5py.File("two.h5", "w") as file:
        for size in (100, 200):
            file["x"] = np.arange(size)
            file["x"][:2]
            file.move("x", f"old{size}")


def many_chunks():
    """The large datasets have one chunk of 65,536; one has a name that is no UTF-8."""
    with h5py.File("chunks.h5", "w") as file:
        for name in [f"d{number}" for number in range(8)] + [b"\xff\xfe"]:
            dataset = file.create_dataset(name, (1 << 20,), "i4", chunks=(16,), compression="gzip")
            dataset[:16] = np.arange(16)
        file.create_dataset("few", data=np.arange(64), chunks=(16,), compression="gzip")
    time.sleep(SETTLED_SECONDS)
    with h5py.File("chunks.h5", "r") as file:
        for name in file.id:
            h5py.Dataset(h5py.h5d.open(file.id, name))[:16]


def two_boxes_of_later():
    """A file that was not there when the run began."""
    shutil.copy("a.h5", "mine/later.h5")
    time.sleep(SETTLED_SECONDS)
    with h5py.File("mine/later.h5", "r") as file:
        for column in (0, CHUNK):
            file["fields/rows"][:CHUNK, column:column + CHUNK]
            time.sleep(1)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
