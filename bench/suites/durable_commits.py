# SPDX-License-Identifier: Apache-2.0
"""fsync over a slow store with a durable tier: appends of 4 KiB and sqlite3 inserts, against the store directly.

The store is the testbed's hdd, the durable tier its nvme. Direct and under Cairn in turns.
"""
import statistics
import sys


def run(bench):
    store = bench.directory("hdd") if bench.quick else bench.testbed("hdd")
    tier = bench.directory("nvme") if bench.quick else bench.testbed("nvme")
    seconds = 0.2 if bench.quick else 5
    with bench.node("--ram", "64M", "--tier", f"{tier}:256M:durable") as node:
        for name, words, target in (("4 KiB append + fsync", [], 20),
                                    ("the same, 8 writers", ["--writers", 8], 60),
                                    ("sqlite3 inserts, synchronous=FULL", ["--sqlite"], 10)):
            command = bench.python_worker(sys.executable, "durable_commits", store, "--seconds", seconds, *words)

            def fresh():
                for old in store.glob("commits*"):
                    old.unlink()

            def direct():
                fresh()
                return bench.native(command)["per_second"]

            def buffered():
                fresh()
                return node.run(command, store)["per_second"]

            pairs = bench.in_turns(buffered, direct)
            ours, theirs = (statistics.median(side) for side in zip(*pairs))
            bench.at_least(name, statistics.median(our / their for our, their in pairs), target,
                           detail=f"{ours:.0f} against {theirs:.1f} per second")
        figures = node.status()["durability"]
    bench.note(f"{figures['logged']} answered by the log with {figures['device_flushes']} flushes of its device, "
               f"{figures['stored']} by the store")
