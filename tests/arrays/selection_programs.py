# SPDX-License-Identifier: Apache-2.0
"""Random selections of random datasets, read and written by two libraries and by a second process. Each read has to
give the cells that were written last.

Usage: selection_programs.py SEED SELECTIONS
"""

import contextlib
import multiprocessing
import os
import sys
import time

import h5py
import numpy as np
import tables
from random_fields import cells, draw_field, draw_part, is_read_by_tables

# A file that has changed a moment ago is not kept: the next change might have the same time.
SETTLED_SECONDS = 0.1
PATH = "a"


def difference(found, expected):
    """Between what was read and what was written, as text; or None."""
    found = np.asarray(found)
    if found.shape != expected.shape:
        return f"shape {found.shape} instead of {expected.shape}"
    if np.array_equal(found, expected):
        return None
    places = np.argwhere(np.asarray(found != expected))
    first = tuple(int(number) for number in places[0])
    return f"{len(places)} of {expected.size} cells differ; at {first} is {found[first]} instead of {expected[first]}"


class Partner:
    """A second process, which reads and writes the file by its own HDF5. It holds the file open for writing between
    `hold` and `let_go`."""

    def __init__(self):
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=Partner.serve, args=(other,), daemon=True)
        self.process.start()

    def ask(self, *words):
        self.pipe.send(words)
        return self.pipe.recv()

    def end(self):
        self.pipe.send(("end",))
        self.process.join()

    @staticmethod
    def serve(pipe):
        held = None
        while True:
            word, *rest = pipe.recv()
            answer = None
            if word == "read":
                path, name, parts = rest
                with h5py.File(path, "r") as file:
                    answer = np.asarray(file[name][parts])
            elif word == "write":
                path, writes = rest
                with contextlib.nullcontext(held) if held else h5py.File(path, "r+") as file:
                    for name, parts, values in writes:
                        file[name][parts] = values
                    file.flush()
            elif word == "bytes":
                path, offset, raw = rest
                descriptor = os.open(path, os.O_WRONLY)
                os.pwrite(descriptor, raw, offset)
                os.close(descriptor)
            elif word == "hold":
                held = h5py.File(rest[0], "r+")
            elif word == "let_go":
                held.close()
                held = None
            else:
                return
            pipe.send(answer)


class Play:
    def __init__(self, seed, selections):
        self.random = np.random.default_rng(seed)
        self.left = selections
        self.partner = Partner()
        self.stage = "begin"

    def chance(self, of_a_hundred):
        return self.random.integers(0, 100) < of_a_hundred

    def settle(self):
        if self.chance(85):
            time.sleep(SETTLED_SECONDS)

    def make_file(self, path):
        """Returns its fields."""
        self.is_latest = self.chance(30)
        how = {"libver": ("v110", "v114")} if self.is_latest else {}  # PyTables has HDF5 1.14
        if self.chance(20):
            how["userblock_size"] = 512
        fields = []
        with h5py.File(path, "w", **how) as file:
            # One of those whose boxes are gathered.
            for number in range(int(self.random.integers(3, 8))):
                fields.append(draw_field(self.random, f"x{number}", is_large=number == 0))
                fields[-1].create(file)
        return fields

    def any_field(self):
        return self.fields[int(self.random.integers(0, len(self.fields)))]

    def judge(self, found, expected, *what):
        self.left -= 1
        problem = difference(found, expected)
        if problem:
            raise AssertionError(f"{self.stage}: {' '.join(map(str, what))}: {problem}")

    def read(self, file, field):
        """By h5py, in one of the ways that it has."""
        parts = draw_part(self.random, field.values.shape)
        expected = field.values[parts]
        dataset = file[field.name]
        how = int(self.random.integers(0, 12))
        if how == 0 and field.is_number():
            self.judge(dataset.astype("f8")[parts], expected.astype("f8"), field, parts, "as f8")
        elif how == 1 and expected.size and all(isinstance(part, slice) for part in parts):
            wide = cells(self.random, field.values.dtype, tuple(size + 2 for size in expected.shape))
            wanted = wide.copy()
            inner = tuple(slice(1, 1 + size) for size in expected.shape)
            wanted[inner] = expected
            dataset.read_direct(wide, parts, inner)
            self.judge(wide, wanted, field, parts, "into other memory")
        elif how == 2 and field.values.dtype.names:
            self.judge(dataset.fields("b")[parts], expected["b"], field, parts, "a part of the cells")
        elif how == 3 and 0 < field.values.size < 5000:
            mask = self.random.integers(0, 8, field.values.shape) == 0
            self.judge(dataset[mask], field.values[mask], field, "points")
        else:
            self.judge(dataset[parts], expected, field, parts)

    def read_by_tables(self, file, field):
        parts = draw_part(self.random, field.values.shape, has_lists=False)
        self.judge(file.get_node(f"/{field.name}")[parts], field.values[parts], field, parts, "by PyTables")

    def read_by_partner(self, field):
        parts = draw_part(self.random, field.values.shape)
        self.judge(self.partner.ask("read", PATH, field.name, parts), field.values[parts], field, parts,
                   "by another process")

    def read_around(self, count, with_tables=True):
        """Readers that have opened the file anew, in turns."""
        with contextlib.ExitStack() as stack:
            here = stack.enter_context(h5py.File(PATH, "r"))
            other = stack.enter_context(tables.open_file(PATH)) if with_tables else None
            for _ in range(count):
                field = self.any_field()
                who = int(self.random.integers(0, 10))
                if who < 2 and other and is_read_by_tables(field):
                    self.read_by_tables(other, field)
                elif who == 2:
                    self.read_by_partner(field)
                else:
                    self.read(here, field)

    def draw_write(self, field):
        parts = draw_part(self.random, field.values.shape)
        return parts, cells(self.random, field.values.dtype, field.values[parts].shape)

    # ---- the stages -----------------------------------------------------------------------------------------------

    def reads(self):
        for _ in range(int(self.random.integers(1, 4))):
            self.read_around(int(self.random.integers(10, 30)))

    def boxes_in_order(self):
        """The node gathers boxes of a contiguous dataset, with ghost zones, that come twice."""
        field = self.fields[0]
        shape = field.values.shape
        steps = [size // int(self.random.integers(2, 5 if len(shape) == 2 else 4)) for size in shape]
        ghost = int(self.random.integers(0, 3))
        boxes = [tuple(slice(max(0, at * step - ghost), min(size, (at + 1) * step + ghost))
                       for at, step, size in zip(corner, steps, shape, strict=True))
                 for corner in np.ndindex(*(size // step for size, step in zip(shape, steps, strict=True)))]
        with h5py.File(PATH, "r") as file:
            for box in 2 * boxes:
                self.judge(file[field.name][box], field.values[box], field, box, "in order")
                time.sleep(0.002)
            # Halves of boxes, and boxes that lie across several.
            for box in boxes[::3]:
                half = (*box[:-1], slice(box[-1].start, (box[-1].start + box[-1].stop) // 2))
                across = tuple(slice(part.start // 2, part.stop // 2 + part.start // 2) for part in box)
                for part in (half, across):
                    self.judge(file[field.name][part], field.values[part], field, part, "in order")

    def writes_here(self):
        """Through the handle that also reads, and beside one that only reads."""
        with h5py.File(PATH, "r+") as writer, h5py.File(PATH, "r") as reader:
            for _ in range(int(self.random.integers(3, 15))):
                field = self.any_field()
                parts, values = self.draw_write(field)
                writer[field.name][parts] = values
                field.values[parts] = values
                for file in (writer, reader):
                    self.read(file, field)
                    self.read(file, self.any_field())
                if not self.is_latest and self.chance(20):
                    writer.flush()
                    self.read_by_partner(field)

    def writes_of_another(self):
        writes = []
        for _ in range(int(self.random.integers(1, 6))):
            field = self.any_field()
            parts, values = self.draw_write(field)
            field.values[parts] = values
            writes.append((field.name, parts, values))
        # A library that has opened the file before may read old cells, and keeps none of them for others.
        stays = tables.open_file(PATH) if self.chance(30) else None
        if stays:
            self.read_as_it_was(stays)
        self.partner.ask("write", PATH, writes)
        self.settle()
        if stays:
            self.read_as_it_was(stays)
            self.read_around(10, with_tables=False)
            stays.close()

    def read_as_it_was(self, file):
        for field in self.fields:
            with contextlib.suppress(tables.HDF5ExtError):
                if is_read_by_tables(field):
                    file.get_node(f"/{field.name}")[...]

    def a_writer_that_stays(self):
        if self.is_latest:  # HDF5 opens such a file once for writing, or for reading
            return
        self.partner.ask("hold", PATH)
        for _ in range(int(self.random.integers(1, 4))):
            self.read_around(5)
            field = self.any_field()
            parts, values = self.draw_write(field)
            self.partner.ask("write", PATH, [(field.name, parts, values)])
            field.values[parts] = values
            self.settle()
            self.read_around(5)
        self.partner.ask("let_go")

    def writes_without_hdf5(self):
        """Another process writes rows of a contiguous dataset, by their place in the file."""
        field = self.fields[0]
        with h5py.File(PATH, "r") as file:
            offset = file[field.name].id.get_offset()
        first, last = sorted(int(number) for number in self.random.integers(0, len(field.values) + 1, 2))
        field.values[first:last] = cells(self.random, field.values.dtype, field.values[first:last].shape)
        row_bytes = field.values[0].nbytes
        self.partner.ask("bytes", PATH, offset + first * row_bytes, field.values[first:last].tobytes())
        self.settle()

    def another_size(self):
        grown = [field for field in self.fields if field.is_extendable()]
        if not grown:
            return
        field = grown[int(self.random.integers(0, len(grown)))]
        shape = tuple(int(self.random.integers(1, 2 * size + 2)) if free is None else size
                      for size, free in zip(field.values.shape, field.how["maxshape"], strict=True))
        with h5py.File(PATH, "r+") as file:
            file[field.name].resize(shape)
            field.resize(shape)
            self.read(file, field)
            parts, values = self.draw_write(field)
            file[field.name][parts] = values
            field.values[parts] = values
        self.settle()

    def another_file(self):
        fields = self.make_file("b")
        os.replace("b", PATH)
        self.fields = fields
        self.settle()

    def go_on(self):
        self.fields = self.make_file(PATH)
        self.settle()
        stages = [self.reads, self.boxes_in_order, self.boxes_in_order, self.writes_here, self.writes_of_another,
                  self.a_writer_that_stays, self.writes_without_hdf5, self.another_size, self.another_file]
        while self.left > 0:
            stage = stages[int(self.random.integers(0, len(stages)))]
            self.stage = f"{self.left} before the end, {stage.__name__}"
            stage()
            self.stage = f"{self.left} before the end, after {stage.__name__}"
            self.reads()
        self.partner.end()


if __name__ == "__main__":
    Play(*(int(word) for word in sys.argv[1:])).go_on()
