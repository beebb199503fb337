# SPDX-License-Identifier: Apache-2.0
"""Appends and syncs, or inserts into a database one per transaction, for a while; prints how often per second.

    durable_commits.py DIRECTORY --seconds 5 [--writers 1] [--sqlite]
"""
import argparse
import json
import multiprocessing
import os
import sqlite3
import time

RECORD = 4096


def append(path, seconds, counts):
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
    os.write(file, b"0" * RECORD)
    os.fsync(file)
    done, end = 0, time.monotonic() + seconds
    begin = time.monotonic()
    while time.monotonic() < end:
        os.write(file, b"%*d" % (RECORD, done))
        os.fsync(file)
        done += 1
    counts.put(done / (time.monotonic() - begin))


def insert(path, seconds, counts):
    base = sqlite3.connect(path, isolation_level=None)
    base.execute("PRAGMA synchronous=FULL")
    base.execute("CREATE TABLE IF NOT EXISTS lines (number INTEGER PRIMARY KEY, text TEXT)")
    done, end = 0, time.monotonic() + seconds
    begin = time.monotonic()
    while time.monotonic() < end:
        base.execute("INSERT INTO lines (text) VALUES (?)", ("x" * 100,))
        done += 1
    counts.put(done / (time.monotonic() - begin))
    base.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("directory")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--writers", type=int, default=1)
    parser.add_argument("--sqlite", action="store_true")
    options = parser.parse_args()
    work = insert if options.sqlite else append
    counts = multiprocessing.SimpleQueue()
    writers = [multiprocessing.Process(target=work,
                                       args=(f"{options.directory}/commits{number}", options.seconds, counts))
               for number in range(options.writers)]
    for writer in writers:
        writer.start()
    rate = sum(counts.get() for _ in writers)
    for writer in writers:
        writer.join()
    print(json.dumps({"per_second": rate}))


if __name__ == "__main__":
    main()
