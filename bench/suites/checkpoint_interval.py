# SPDX-License-Identifier: Apache-2.0
"""A program that writes at full speed while dirty data gets to a durable tier every 10 s, against the same without.

The store is the testbed's hdd, the durable tier its nvme. The files stay dirty in RAM, so all of them are in each
checkpoint. With and without in turns.
"""
import statistics
import sys

MIB = 1 << 20


def run(bench):
    store = bench.directory("hdd") if bench.quick else bench.testbed("hdd")
    tier = bench.directory("nvme") if bench.quick else bench.testbed("nvme")
    if not bench.quick:
        bench.need_memory(6, "two RAM tiers and the testbed's disk")
    size, seconds, interval = (16, 1, 1) if bench.quick else (512, 25, 10)
    config = bench.scratch / "checkpoint.yaml"
    config.write_text(f"checkpoint:\n  interval: {interval}\n")
    ram = ("--ram", 2 * size * MIB, "--trigger", "on-exit")  # the store would have them else, and not the log
    kept = bench.node(*ram, "--tier", f"{tier}:{4 * size * MIB}:durable", "--config", config, name="bench-kept")
    plain = bench.node(*ram, "--tier", f"{tier}:{2 * size * MIB}", name="bench-plain")
    command = bench.python_worker(sys.executable, "rewrites", store, "--megabytes", size, "--seconds", seconds)
    pairs = bench.in_turns(lambda: kept.run(command, store)["per_second"],
                           lambda: plain.run(command, store)["per_second"])
    ours, theirs = (statistics.median(side) for side in zip(*pairs))
    bench.at_least("throughput with checkpoints", statistics.median(our / their for our, their in pairs), 0.95,
                   detail=f"{ours / MIB:.0f} against {theirs / MIB:.0f} MiB/s")
    figures = kept.status()["durability"]["checkpoint"]
    bench.note(f"{figures['count']} checkpoints, {figures['bytes'] / MIB:.0f} MiB")
