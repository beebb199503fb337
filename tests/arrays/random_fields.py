# SPDX-License-Identifier: Apache-2.0
"""Random datasets and selections of them: types, layouts, filters, sparse and extendable ones."""

import h5py
import numpy as np

NUMBERS = ["i1", "u1", "<i2", ">i4", "<i4", "<i4", "<i8", "<u8", "<f2", "<f4", "<f4", "<f8", ">f8"]
OTHERS = ["bool", "c8", "S5", [("a", "<i4"), ("b", "<f4")]]
# Those that PyTables' own HDF5 knows.
PLAIN = [{}, {"compression": "gzip"}, {"compression": "gzip", "shuffle": True},
         {"compression": "gzip", "compression_opts": 1, "shuffle": True, "fletcher32": True}, {"fletcher32": True},
         {"shuffle": True}]
SPECIAL = [{"compression": "lzf"}, {"compression": "lzf", "shuffle": True}, {"compression": "szip"},
           {"scaleoffset": 0}]


def cells(random, dtype, shape):
    dtype = np.dtype(dtype)
    numbers = random.integers(0, 100, shape)
    if dtype.names:
        values = np.zeros(shape, dtype)
        values["a"], values["b"] = numbers, numbers + 0.5
        return values
    return (numbers % 2 if dtype.kind == "b" else numbers).astype(dtype)


class Field:
    """A dataset, and the cells that it has to have."""

    def __init__(self, name, values, how):
        self.name, self.values, self.how = name, values, how

    def __str__(self):
        how = {key: value for key, value in self.how.items() if key != "data"}
        return f"{self.name} ({self.values.dtype} {self.values.shape} {how})"

    def is_number(self):
        return self.values.dtype.kind in "iuf"

    def is_extendable(self):
        return None in self.how.get("maxshape", ())

    def create(self, file):
        how = dict(self.how)
        is_sparse, is_compact = how.pop("sparse", False), how.pop("compact", False)
        if is_compact:
            self.create_compact(file)
            return
        if not is_sparse:
            how["data"] = self.values
        try:
            file.create_dataset(self.name, self.values.shape, self.values.dtype, **how)
        except ValueError:
            # szip wants chunks of some cells.
            if how.pop("compression", None) != "szip":
                raise
            del self.how["compression"]
            file.create_dataset(self.name, self.values.shape, self.values.dtype, **how)

    def create_compact(self, file):
        creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        creation.set_layout(h5py.h5d.COMPACT)
        h5py.h5d.create(file.id, self.name.encode(), h5py.h5t.py_create(self.values.dtype, logical=True),
                        h5py.h5s.create_simple(self.values.shape), creation)
        file[self.name][...] = self.values

    def resize(self, shape):
        resized = np.full(shape, self.how.get("fillvalue", np.zeros((), self.values.dtype)), self.values.dtype)
        common = tuple(slice(0, min(sizes)) for sizes in zip(shape, self.values.shape, strict=True))
        resized[common] = self.values[common]
        self.values = resized


def is_read_by_tables(field):
    """PyTables has its own idea of other types, of more than one dimension that grows, and of nothing."""
    filters = {"compression": field.how.get("compression"), "scaleoffset": field.how.get("scaleoffset")}
    return (field.is_number() and field.values.dtype.str[1:] != "f2" and field.values.size > 0
            and filters["compression"] in (None, "gzip") and filters["scaleoffset"] is None
            and field.how.get("maxshape", ()).count(None) <= 1)


def draw_large(random, name):
    """One of a MiB or more, whose rows are short enough to be gathered."""
    dtype = np.dtype(NUMBERS[int(random.integers(0, len(NUMBERS)))])
    cells_wanted = (1 << 20) * float(random.uniform(1, 3)) / dtype.itemsize
    dimensions = int(random.integers(2, 4))
    side = int(cells_wanted ** (1 / dimensions)) + 1
    shape = tuple(side + int(number) for number in random.integers(0, 9, dimensions))
    return Field(name, cells(random, dtype, shape), {})


def draw_chunked(random, values):
    how = {}
    filters = PLAIN + SPECIAL if values.dtype.kind in "iu" else PLAIN + SPECIAL[:2]
    how.update(filters[int(random.integers(0, len(filters)))])
    how["chunks"] = tuple(int(random.integers(max(1, size // 4), size + 1)) for size in values.shape)
    if random.integers(0, 3) == 0:
        how["maxshape"] = tuple(None if random.integers(0, 2) else size for size in values.shape)
    return how


def draw_field(random, name, is_large=False):
    if is_large:
        return draw_large(random, name)
    dimensions = int(random.integers(1, 5))
    most = {1: 60000, 2: 300, 3: 60, 4: 20}[dimensions]
    shape = tuple(int(number) for number in random.integers(1, most, dimensions))
    types = NUMBERS if random.integers(0, 7) else OTHERS
    values = cells(random, types[int(random.integers(0, len(types)))], shape)
    layout = int(random.integers(0, 16))
    if layout == 0 and values.nbytes < 60000:
        return Field(name, values, {"compact": True})
    how = draw_chunked(random, values) if layout > 1 else {}
    if values.dtype.kind in "iuf" and random.integers(0, 4) == 0:
        how |= {"sparse": True, "fillvalue": 7}
        values = np.full(shape, 7, values.dtype)
    return Field(name, values, how)


def draw_part(random, shape, has_lists=True):
    """Boxes mostly; else steps, lists, single cells, nothing."""
    parts = []
    for size in shape:
        first, last = sorted(int(number) for number in random.integers(0, size + 1, 2))
        kind = int(random.integers(0, 14))
        if kind == 0 and size > 0:
            parts.append(int(random.integers(0, size)))
        elif kind == 1:
            parts.append(slice(first, last, int(random.integers(1, 4))))
        elif kind == 2:
            parts.append(slice(0, size))
        else:
            parts.append(slice(first, max(last, first + 1)) if kind < 13 else slice(first, last))
    if has_lists and shape[0] > 0 and random.integers(0, 20) == 0:
        parts[0] = sorted({int(number) for number in random.integers(0, shape[0], 3)})
    return tuple(parts)
