# SPDX-License-Identifier: Apache-2.0
"""Offsets up to and beyond what block numbers reach, 256 TiB less one block: where the file system allows them, the
bytes are there and nowhere else; where it does not, the errors are its own."""

import os
import sys

BLOCK = 65536
REACH = 1 << 48
PLACES = (0, BLOCK, 1 << 40, REACH - 2 * BLOCK, REACH - BLOCK - 5, REACH - BLOCK, REACH - 3, REACH, REACH + 100,
          REACH + BLOCK, 300 << 40, (1 << 62) + 7)


def attempt(what, call, *arguments):
    try:
        print(what, call(*arguments))
    except OSError as error:
        print(what, "errno", error.errno)
    sys.stdout.flush()


def read_all(file):
    for place in PLACES:
        for shift in (0, 1):
            attempt(f"at {place:x}+{shift}", os.pread, file, 12, place + shift)


file = os.open("a", os.O_RDWR | os.O_CREAT, 0o644)
for step, place in enumerate(PLACES):
    attempt(f"write at {place:x}", os.pwrite, file, b"place %06d" % step, place)
read_all(file)
attempt("size", os.lseek, file, 0, os.SEEK_END)
os.fsync(file)
for place in PLACES[:8]:
    attempt(f"again at {place:x}", os.pwrite, file, b"Place", place)
read_all(file)
for size in (1 << 62, 300 << 40, REACH + 50, REACH, REACH - BLOCK - 2, BLOCK + 7, 4):
    attempt(f"cut to {size:x}", os.ftruncate, file, size)
    attempt("size", os.lseek, file, 0, os.SEEK_END)
    attempt("first", os.pread, file, 12, 0)
    attempt("last", os.pread, file, 12, max(0, size - 12))
attempt("close", os.close, file)
