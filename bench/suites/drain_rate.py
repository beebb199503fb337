# SPDX-License-Identifier: Apache-2.0
"""How fast a node stores what it holds, against fio's sequential writes to the same throttled disk."""
import statistics

from harness import device_rate


def run(bench):
    disk = bench.directory("disk") if bench.quick else bench.testbed("hdd")
    size = bench.size("768M", "16M")
    ratios, rates = [], []
    with bench.node("--ram", bench.size("2G", "128M")) as node:
        for repetition in range(bench.pairs):
            own_rate = 0 if bench.quick else device_rate.sequential_write(bench, disk)
            file = disk / f"file{repetition}"
            # Not by `cairn run`, which would store everything before it returns.
            bench.native(bench.worker("sequential_write", file, "--size", size, "--verify", 0),
                         environment=node.preload_environment(disk))
            left = node.status()["backing"]["dirty_bytes"]
            rate = left / node.drain()
            ratios.append(rate / own_rate if own_rate else 0)
            rates.append(rate / 1e6)
            _verify(bench, file, size)
            bench.output(node.command(["/bin/rm", file], disk))
    bench.at_least("drain of a sequentially written file", 100 * statistics.median(ratios), 95, "%",
                   detail=f"{statistics.median(rates):.1f} MB/s")


def _verify(bench, file, size: str) -> None:
    """What the disk holds must be what was written: read natively, past the node."""
    bench.native(bench.worker("random_io", file, "--size", size, "--mode", "check"))
