# SPDX-License-Identifier: Apache-2.0
"""Two bursts of different weight that collide on one throttled disk: at its rate, and each by its weight."""
import statistics
import subprocess
import time

from harness import device_rate
from harness.errors import BenchError

HEAVY, LIGHT = 300, 100


def run(bench):
    disk = bench.directory("disk") if bench.quick else bench.testbed("hdd")
    if not bench.quick:
        bench.need_memory(4, "two bursts in the RAM tier")
    size = bench.size("768M", "8M")
    total = 2 * int(size[:-1]) << 20
    overall, shares = [], []
    with bench.node("--ram", bench.size("2G", "128M")) as node:
        for repetition in range(min(bench.pairs, 3)):
            rate = 0 if bench.quick else device_rate.sequential_write(bench, disk)
            seconds, share = _collide(bench, node, disk, size, repetition)
            overall.append(seconds * rate / total if rate else 0)
            shares.append(share)
    bench.at_most("both stored / device time", statistics.median(overall), 1.05, "x")
    wanted = HEAVY / (HEAVY + LIGHT)
    off = [abs(share - wanted) / wanted for share in shares if share is not None]
    bench.at_most("share of the heavier run, off its weight", 100 * statistics.median(off or [0]), 15, "%",
                  detail=", ".join("-" if share is None else f"{share:.2f}" for share in shares)
                         + f" of the bytes while both stored, {wanted:.2f} by weight")


def _collide(bench, node, disk, size: str, repetition: int):
    """Seconds until both are stored, and the heavier one's part of what was stored while both had something left."""
    files = [disk / f"{name}{repetition}" for name in ("heavy", "light")]
    begin = time.monotonic()
    started = []
    for file, weight in zip(files, (HEAVY, LIGHT)):
        words = bench.worker("sequential_write", file, "--size", size, "--verify", 0)
        started.append(subprocess.Popen(node.command(words, disk, ["--weight", str(weight)]),
                                        env=bench.environment, cwd=bench.scratch, stdout=subprocess.DEVNULL))
    share = _watch(bench, node, started, int(size[:-1]) << 20)
    for process in started:
        if process.wait(timeout=600) != 0:
            raise BenchError(f"a burst ended with {process.returncode}")
    seconds = time.monotonic() - begin
    for file in files:
        bench.native(bench.worker("random_io", file, "--size", size, "--mode", "check"))
        bench.output(node.command(["/bin/rm", file], disk))
    return seconds, share


def _watch(bench, node, started, size: int):
    """The last share that was seen before one of the runs had everything stored."""
    share = None
    while any(process.poll() is None for process in started):
        stored = {run["weight"]: run["stored_bytes"] for run in node.status()["runs"]}
        if stored.get(HEAVY, 0) >= size * 0.95 or stored.get(LIGHT, 0) >= size * 0.95:
            break
        both = stored.get(HEAVY, 0) + stored.get(LIGHT, 0)
        if both > size / 3:
            share = stored.get(HEAVY, 0) / both
        time.sleep(0.1)
    return share
