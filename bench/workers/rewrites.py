# SPDX-License-Identifier: Apache-2.0
"""Writes a file from front to back, again and again, and at the end compares it; prints how many bytes a second.

    rewrites.py DIRECTORY --megabytes 512 --seconds 25
"""
import argparse
import json
import os
import time

REQUEST = 1 << 20


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory")
    parser.add_argument("--megabytes", type=int, default=512)
    parser.add_argument("--seconds", type=float, default=25)
    arguments = parser.parse_args()
    contents = [os.urandom(REQUEST) for _ in range(7)]
    path = os.path.join(arguments.directory, "rewrites")
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    begin = time.monotonic()
    done, offset = 0, 0
    while time.monotonic() < begin + arguments.seconds:
        done += os.pwrite(file, contents[done // REQUEST % 7], offset)
        offset = done % (arguments.megabytes * REQUEST)
    seconds = time.monotonic() - begin
    # Each place has what was written there last.
    turns, places = divmod(done // REQUEST, arguments.megabytes)
    for place in range(arguments.megabytes if turns else places):
        number = (turns if place < places else turns - 1) * arguments.megabytes + place
        if os.pread(file, REQUEST, place * REQUEST) != contents[number % 7]:
            raise SystemExit(f"wrong bytes at {place} MiB")
    os.close(file)
    os.unlink(path)
    print(json.dumps({"per_second": done / seconds}))


main()
