#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a file, makes it durable and ends as if the machine died; or compares it with what was written.

    logged_file.py FILE --megabytes 1024 --seed 7 [--check] [--kill PID ...]
"""
import argparse
import os
import random
import signal
import struct

MIB = 1 << 20


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--megabytes", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--kill", type=int, nargs="*", default=[], help="with itself, at once")
    arguments = parser.parse_args()
    body = random.Random(arguments.seed).randbytes(MIB - 8)
    file = os.open(arguments.file, os.O_RDONLY if arguments.check else os.O_WRONLY | os.O_CREAT, 0o644)
    for number in range(arguments.megabytes):
        content = struct.pack("<Q", number) + body
        if arguments.check:
            if os.pread(file, MIB, number * MIB) != content:
                raise SystemExit(f"wrong bytes in MiB {number}")
        elif os.pwrite(file, content, number * MIB) != MIB:
            raise SystemExit("short write")
    if not arguments.check:
        os.fsync(file)
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for process in arguments.kill:
            os.kill(process, number)
    if arguments.kill:
        os.kill(os.getpid(), signal.SIGKILL)
    os.close(file)


main()
