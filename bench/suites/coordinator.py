# SPDX-License-Identifier: Apache-2.0
"""Two bursts of different weight that collide on one throttled disk: at its rate, and each by its weight.

And a program that reads little and waits for each read, beside one that writes all it can.
"""
import statistics
import subprocess
import time

from harness import device_rate
from harness.errors import BenchError
from harness.reader import Reader

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
    _read_beside_a_burst(bench, disk)


def _read_beside_a_burst(bench, disk):
    """The writer's data is larger than the RAM tier, which the reader's has to keep a part of."""
    size = bench.size("1536M", "64M")
    window = 50 if bench.quick else 1000
    ratios, times = [], []
    with bench.node("--ram", bench.size("1G", "48M")) as node:
        small = disk / "small"
        bench.native(bench.worker("sequential_write", small, "--size", bench.size("64M", "4M"), "--verify", 0))
        with Reader(bench, node, small, disk) as reader:
            for repetition in range(min(bench.pairs, 3)):
                alone = reader.read_for(window)
                bulk = disk / f"bulk{repetition}"
                words = bench.worker("sequential_write", bulk, "--size", size, "--verify", 0)
                writer = subprocess.Popen(node.command(words, disk), env=bench.environment, cwd=bench.scratch,
                                          stdout=subprocess.DEVNULL)
                beside = []
                while writer.poll() is None:
                    beside.append(reader.read_for(window))
                if writer.returncode != 0:
                    raise BenchError(f"the writer ended with {writer.returncode}")
                worst = max(each["p99_ns"] for each in beside or [reader.read_for(window)])
                ratios.append(worst / alone["p99_ns"])
                times.append((alone["p99_ns"], worst))
                bench.output(node.command(["/bin/rm", bulk], disk))
    detail = "p99 of the worst second: " + ", ".join(
        f"{worst / 1000:.3g} against {alone / 1000:.3g} us" for alone, worst in times)
    bench.at_most("p99 of 4 KiB reads beside a bulk writer", statistics.median(ratios), 2, "x", detail=detail)


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
