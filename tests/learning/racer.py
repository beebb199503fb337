# SPDX-License-Identifier: Apache-2.0
"""One program of a race for a file, and the model that it is held against, byte by byte. Run as a script.

    racer.py read FILE UNTIL          reads it from front to back, again and again, until the file UNTIL exists
    racer.py write FILE FIRST END SEED ROUNDS    writes pieces of [FIRST, END)
    racer.py change FILE SIZE SEED ROUNDS        truncates, extends and writes all of it
    racer.py replace FILE SIZE SEED ROUNDS       renames, unlinks and creates it anew

A byte at some place is always the same seven bits with the eighth set, but for the tag of who wrote it: those seven
bits are exclusive-or'ed with it. So a byte of another place, of nobody, or half written is seen to be wrong.
Writers say at the end what they left: a line of JSON with the digest of their part and its bytes.
"""

import hashlib
import json
import os
import random
import sys
import time
from pathlib import Path

MIB = 1 << 20
SIZE_MAX = 16 * MIB
PIECE = 1 << 16
TAGS = bytes((0x80 | tag) for tag in (1, 2, 4, 8, 16, 32, 64, 127))


def base_pattern():
    seven_bits = bytes(value & 0x7f for value in range(256))
    return random.Random(7).randbytes(SIZE_MAX).translate(seven_bits)


BASE = base_pattern()


def mixed(data, offset):
    """Turns written bytes into the tag of each, and tags into the bytes to write."""
    base = BASE[offset:offset + len(data)]
    return (int.from_bytes(data, "little") ^ int.from_bytes(base, "little")).to_bytes(len(data), "little")


def content(offset, length, tag):
    return mixed(TAGS[tag:tag + 1] * length, offset)


def check(data, offset, zeros):
    """Raises unless each byte was written there by somebody, or is zero where that may be."""
    strange = mixed(data, offset).translate(None, TAGS)
    # A byte that was written is never zero: its eighth bit is set.
    if len(strange) != (data.count(0) if zeros else 0):
        at = next(at for at, tag in enumerate(mixed(data, offset)) if tag not in TAGS and (data[at] or not zeros))
        raise AssertionError(f"byte {offset + at} is {data[at]:#x}, which nobody wrote there")


def read(path, until, zeros=True):
    total, laps = 0, 0
    while not os.path.exists(until):
        try:
            file = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            time.sleep(0.0005)
            continue
        offset = 0
        while data := os.pread(file, PIECE, offset):
            check(data, offset, zeros)
            offset += len(data)
            time.sleep(0.0003)
        total, laps = total + offset, laps + 1
        os.close(file)
    return {"bytes": total, "laps": laps}


def pieces(draw, first, end, count):
    for _ in range(count):
        offset = draw.randrange(first, end)
        yield offset, min(draw.choice((17, 4096, 30_000, PIECE, 3 * PIECE + 5)), end - offset)


def write_all(file, data, offset):
    assert os.pwrite(file, data, offset) == len(data)


def write(path, first, end, seed, rounds):
    draw = random.Random(seed)
    file = os.open(path, os.O_RDWR)
    model = bytearray(os.pread(file, end - first, first))
    check(bytes(model), first, False)
    for _ in range(rounds):
        for offset, length in pieces(draw, first, end, 8):
            data = content(offset, length, draw.randrange(len(TAGS)))
            write_all(file, data, offset)
            model[offset - first:offset - first + length] = data
            if draw.randrange(4) == 0:
                assert os.pread(file, length, offset) == data, f"what was written at {offset} is not there"
    os.close(file)
    return {"first": first, "end": end, "digest": hashlib.sha256(model).hexdigest()}


def fill(path, size, tag, flags=os.O_CREAT):
    file = os.open(path, os.O_RDWR | flags, 0o644)
    for offset in range(0, size, MIB):
        write_all(file, content(offset, min(MIB, size - offset), tag), offset)
    os.close(file)


def change(path, size, seed, rounds):
    draw = random.Random(seed)
    file = os.open(path, os.O_RDWR)
    model = bytearray(os.pread(file, size, 0))
    for _ in range(rounds):
        length = draw.randrange(size // 8, size)
        os.ftruncate(file, length)
        del model[length:]
        model.extend(bytes(length - len(model)))  # it may be longer than before
        if draw.randrange(2):
            os.ftruncate(file, size)
            model.extend(bytes(size - length))
        for offset, count in pieces(draw, 0, size, 6):
            data = content(offset, count, draw.randrange(len(TAGS)))
            write_all(file, data, offset)
            model.extend(bytes(max(0, offset + count - len(model))))
            model[offset:offset + count] = data
        assert os.fstat(file).st_size == len(model), f"{os.fstat(file).st_size} instead of {len(model)} bytes"
    if len(model) < size:
        os.ftruncate(file, size)
        model.extend(bytes(size - len(model)))
    os.close(file)
    return {"first": 0, "end": size, "digest": hashlib.sha256(model).hexdigest()}


def replace(path, size, seed, rounds):
    draw = random.Random(seed)
    tag = 0
    for number in range(rounds):
        length = draw.randrange(size // 2, size) if number + 1 < rounds else size
        tag = draw.randrange(len(TAGS))
        kind = draw.randrange(3)
        if kind == 0:
            fill(path + ".new", length, tag)
            os.rename(path + ".new", path)
        elif kind == 1:
            os.unlink(path)
            fill(path, length, tag)
        else:
            os.rename(path, path + ".old")
            fill(path, length, tag, os.O_CREAT | os.O_EXCL)
            os.unlink(path + ".old")
    return {"first": 0, "end": size, "digest": hashlib.sha256(content(0, size, tag)).hexdigest()}


def main():
    role, path, *words = sys.argv[1:]
    if role == "read":
        said = read(path, words[0])
    else:
        said = {"write": write, "change": change, "replace": replace}[role](path, *map(int, words))
    print(json.dumps(said))


def digest_of(path, first, end):
    with open(Path(path), "rb") as file:
        file.seek(first)
        return hashlib.sha256(file.read(end - first)).hexdigest()


if __name__ == "__main__":
    main()
