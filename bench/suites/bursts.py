# SPDX-License-Identifier: Apache-2.0
"""Bursts of reading larger than RAM, from a throttled disk: what waits in a file tier meanwhile, and what that saves.

A program reads 48 MiB at once and then computes for twice as long as the disk takes for it. RAM holds 32 MiB. With RAM
alone at most its budget can be fetched while the program computes; with a file tier below, the rest of the burst waits
there. All sides read the same file in the same order; each byte is compared before a time is reported.
"""
import statistics

from harness.patterns import BLOCK, write_list

MIB = 1 << 20
BURST = 768  # blocks
COMPUTE_US = 1400  # for each of them: together twice the device's time
BURSTS = 8


def run(bench):
    burst, bursts = (32, 4) if bench.quick else (BURST, BURSTS)
    directory = bench.directory("hdd") if bench.quick else bench.testbed("hdd")
    tier = bench.directory("nvme") if bench.quick else bench.testbed("nvme")
    data = directory / "bursts"
    bench.native(bench.worker("read_list", data, "--make", burst * bursts * BLOCK))
    write_list(bench.scratch / "bursts", range(burst * bursts))
    words = bench.worker("read_list", data, "--list", bench.scratch / "bursts", "--batch", burst,
                         "--compute-us", 100 if bench.quick else COMPUTE_US)
    ram = max(burst * BLOCK * 2 // 3, MIB)
    with_tier = ("--ram", ram, "--tier", f"{tier}:{8 * burst * BLOCK // 2}")
    sides = {"ours": with_tier, "RAM alone": ("--ram", ram), "none": with_tier}
    rounds = [{side: _run(bench, words, directory, side, arguments) for side, arguments in sides.items()}
              for _ in range(1 if bench.quick else 3)]
    for other, target in (("RAM alone", 2), ("none", 3)):
        ratio = statistics.median(times[other]["io_ns"] / times["ours"]["io_ns"] for times in rounds)
        detail = ", ".join(f"{side} {statistics.median(times[side]['io_ns'] for times in rounds) / 1e9:.3g} s"
                           for side in ("ours", other))
        below = statistics.median(times["ours"]["below"] for times in rounds) / MIB
        bench.at_least(f"time in I/O, {other} against ours", ratio, target,
                       detail=f"{detail}; {below:.0f} of {burst * bursts * BLOCK // MIB} MiB by way of the file tier")


def _run(bench, words, directory, side: str, arguments) -> dict:
    settings = bench.scratch / "bursts.yaml"
    settings.write_text(f"prefetch:\n  budget: {0 if side == 'none' else 25}\n")
    bench.drop_caches()
    with bench.node(*arguments, "--config", settings) as node:
        result = node.run(words, directory)
        moves = node.status()["moves"]
    below = sum(move["bytes"] for move in moves
                if move["from"] == "ram" and move["reason"] == "ahead of use")
    return {**result, "below": below}
