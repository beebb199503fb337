# SPDX-License-Identifier: Apache-2.0
"""Streams of page references: generated ones, and traces of real I/O from a directory.

A stream is an array of 32-bit page numbers, from 0 on in order of first appearance. Traces are read as they are
published: Darshan and DFTracer accesses as CSV (t,rank,file,op,off,len), the ARC paper's lists (start block, blocks of
512 bytes), and 32-bit page numbers.
"""
import array
import bisect
import csv
import itertools
import math
import pathlib
import random
import subprocess

from .errors import BenchError

# Bytes of a page: of the order of what the program accesses at once, as a tier's block would be chosen.
HPC_PAGE_BYTES = {"openpmd_read_1024r": 64 << 10, "vpic_hdf5_192r": 512 << 10, "openpmd_write_384r": 16 << 20,
                  "dlio_unet3d_1r": 4 << 20, "cm1_48r": 64 << 10}
DEFAULT_PAGE_BYTES = 4 << 10
ARC_BLOCK_BYTES = 512
UNPACK = {".zst": ["zstd", "-dcq"], ".xz": ["xz", "-dcq"], ".gz": ["gzip", "-dcq"]}


def dense(pages) -> array.array:
    numbers = {}
    return array.array("I", (numbers.setdefault(page, len(numbers)) for page in pages))


# ---- models of traffic ------------------------------------------------------------------------------------


def poisson(pages: int, repeats: int, lifetime: float, seed: int) -> list:
    """Pages come at rate 1; each is read when it comes and Poisson(repeats) times more, at intervals from then
    that are exponential with mean `lifetime` ("Performance Models for a Two-tiered Storage System", section 6.1)."""
    source = random.Random(seed)
    now = 0.0
    references = []
    for page in range(pages):
        now += source.expovariate(1)
        references.append((now, page))
        references += [(now + source.expovariate(1 / lifetime), page) for _ in range(_poisson(source, repeats))]
    references.sort()
    # Without the end, where no new pages come.
    return [page for _, page in references[:int(len(references) * 0.98)]]


def _poisson(source, mean: float) -> int:
    limit, product, count = math.exp(-mean), source.random(), 0
    while product > limit:
        product *= source.random()
        count += 1
    return count


def independent(pages: int, alpha: float, budget: int, references: int, renewed: bool, seed: int) -> list:
    """Zipf(alpha) over the pages; a page expires after its share of `budget` references, and a new one takes its rank
    if `renewed` (the same section: the independent reference model with lifetimes)."""
    source = random.Random(seed)
    weights = [rank ** -alpha for rank in range(1, pages + 1)]
    total = sum(weights)
    left = [math.ceil(budget * weight / total) for weight in weights]
    most = list(left)
    cumulated = list(itertools.accumulate(weights))
    page_of = list(range(pages))
    fresh, alive = pages, pages
    result = []
    while len(result) < references and alive:
        rank = min(bisect.bisect_left(cumulated, source.random() * total), pages - 1)
        if left[rank] == 0:
            continue
        result.append(page_of[rank])
        left[rank] -= 1
        if left[rank] == 0 and renewed:
            page_of[rank], left[rank] = fresh, most[rank]
            fresh += 1
        elif left[rank] == 0:
            alive -= 1
    return result


def epochs(pages: int, count: int, seed: int) -> list:
    source = random.Random(seed)
    result = []
    for _ in range(count):
        order = list(range(pages))
        source.shuffle(order)
        result += order
    return result


def checkpoints(pages: int, steps: int, kept: int, seed: int) -> list:
    """Each step writes a checkpoint and reads it back; a few pages of metadata are used all the time."""
    source = random.Random(seed)
    result = []
    for step in range(steps):
        for _ in range(2):
            for at in range(pages):
                result.append(step % kept * pages + at)
                if at % 8 == 0:
                    result.append(-1 - source.randrange(32))
    return result


def tiles(side: int, sweeps: int, turning: bool) -> list:
    """Each tile of a square array with its eight neighbours, by rows, or by columns every other time."""
    result = []
    for sweep in range(sweeps):
        for major in range(side):
            for minor in range(side):
                row, column = (minor, major) if turning and sweep % 2 else (major, minor)
                result += [a * side + b for a in range(max(0, row - 1), min(side, row + 2))
                           for b in range(max(0, column - 1), min(side, column + 2))]
    return result


def mixed(streams, shares, seed: int) -> list:
    """Several programs at once, each with pages of its own."""
    source = random.Random(seed)
    left = [iter(stream) for stream in streams]
    result = []
    for _ in range(min(int(len(stream) * sum(shares) / share) for stream, share in zip(streams, shares))):
        chosen = source.choices(range(len(streams)), shares)[0]
        page = next(left[chosen], None)
        if page is not None:
            result.append((chosen, page))
    return result


def generated(scale: float) -> dict:
    """Streams by name; `scale` shortens them."""
    def size(full: int) -> int:
        return max(100, int(full * scale))
    zipf = independent(4000, 0.9, 1 << 40, size(150_000), False, 60)
    return {
        "poisson, tau 10": poisson(size(25_000), 8, 10, 1),
        "poisson, tau 20": poisson(size(25_000), 8, 20, 2),
        "poisson, tau 40": poisson(size(25_000), 8, 40, 3),
        "independent, alpha 1": independent(1000, 1.0, size(200_000), size(200_000), False, 4),
        "independent, renewed": independent(1000, 1.0, 20_000, size(200_000), True, 5),
        "independent, renewed soon": independent(1000, 0.8, 5_000, size(200_000), True, 6),
        "loop": [at % 1000 for at in range(size(100_000))],
        "shuffled epochs": epochs(2000, max(2, size(60_000) // 2000), 50),
        "checkpoints": checkpoints(1500, max(2, size(20 * 3000) // 3000), 4, 52),
        "tiles by rows": tiles(48, max(1, int(6 * scale)), False),
        "tiles turning": tiles(48, max(2, int(6 * scale)), True),
        "popular and a scan": mixed([zipf, list(range(size(80_000)))], [2, 1], 61),
        "popular and a loop": mixed([zipf, [at % 1500 for at in range(size(80_000))]], [2, 1], 62),
    }


# ---- traces ------------------------------------------------------------------------------------------------


def traces(directory: pathlib.Path) -> dict:
    """Path by name, "hpc/..." for those of parallel programs; what has another form is not named."""
    found = {}
    for path in sorted(directory.rglob("*")):
        name = path.name.removesuffix(path.suffix) if path.suffix in UNPACK else path.name
        stem, _, kind = name.rpartition(".")
        if kind == "csv":
            found[f"hpc/{stem}"] = path
        elif kind in ("lis", "u32", "trace"):
            found[stem] = path
    return found


def read_trace(path: pathlib.Path) -> list:
    data = _unpacked(path)
    name = path.name.removesuffix(path.suffix) if path.suffix in UNPACK else path.name
    stem, _, kind = name.rpartition(".")
    if kind == "csv":
        return _accesses(path, data.decode(), HPC_PAGE_BYTES.get(stem, DEFAULT_PAGE_BYTES))
    if kind == "lis":
        return _block_lists(path, data.decode(), 1 if "OLTP" in stem else DEFAULT_PAGE_BYTES // ARC_BLOCK_BYTES)
    if len(data) % 4:
        raise BenchError(f"{path}: not a list of 32-bit page numbers")
    return list(array.array("I", data))


def _unpacked(path: pathlib.Path) -> bytes:
    command = UNPACK.get(path.suffix)
    if command is None:
        return path.read_bytes()
    done = subprocess.run([*command, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode:
        raise BenchError(f"{path}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


def _accesses(path, text: str, page_bytes: int) -> list:
    pages = []
    try:
        for row in csv.DictReader(text.splitlines()):
            offset, length = int(row["off"]), int(row["len"])
            if length > 0:
                file = int(row["file"]) << 40
                pages += range(file + offset // page_bytes, file + (offset + length - 1) // page_bytes + 1)
    except (KeyError, TypeError, ValueError) as error:
        raise BenchError(f"{path}: not a table with the columns file, off and len: {error}") from error
    return pages


def _block_lists(path, text: str, blocks_per_page: int) -> list:
    pages = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        try:
            first, count = int(words[0]), int(words[1])
        except (IndexError, ValueError) as error:
            raise BenchError(f"{path}:{number}: not a first block and a number of blocks") from error
        pages += range(first // blocks_per_page, (first + count - 1) // blocks_per_page + 1)
    return pages
