# SPDX-License-Identifier: Apache-2.0
"""What the predictors foresee, in front of a simulated device: coverage, accuracy and cost of each class of orders.

The orders of the classes (harness/patterns.py) are drawn anew in each run; CAIRN_BENCH_SEED repeats one. Seconds where
`./dev bench prefetch` takes the better part of an hour on the throttled disk.
"""
import json
import statistics
import subprocess

from harness.patterns import DRAWN, WITHOUT_PATTERN, drawn_pattern, new_seed, patterns, write_list

DRAWS = 5
# Coverage and accuracy in percent, by how the program reads: each read and 6 ms of computing, or 96 reads at once.
SINGLE, BURSTS = 1, 96
GOALS = {
    "walks through one descriptor": (95, 95),
    "extents of unknown length": (85, 85),
    "a shuffle that changes, from the third epoch": (85, 95),
    "the same shuffle, from the second epoch": (90, 95),
}
REGULAR = {SINGLE: (97, 97), BURSTS: (92, 95)}
NS_PER_ACCESS = 3000


def run(bench):
    blocks, reads, draws = (1024, 600, 1) if bench.quick else (2048, 1200, DRAWS)
    seed = new_seed()
    for batch in (SINGLE, BURSTS):
        for name, order in patterns(blocks, reads).items():
            skip = 1 if None in order else 0
            _judge(bench, name, batch, [_measure(bench, order, blocks, batch, skip)])
        for name, (_, skip) in DRAWN.items():
            _judge(bench, name, batch,
                   [_measure(bench, drawn_pattern(name, seed + draw, blocks, reads), blocks, batch, skip)
                    for draw in range(draws)])


def _measure(bench, order, blocks: int, batch: int, skip: int) -> dict:
    path = bench.scratch / "order"
    write_list(path, order)
    words = bench.worker("prediction", path, "--blocks", blocks, "--ram-blocks", blocks // 4, "--batch", batch,
                         "--skip", skip)
    return json.loads(subprocess.run([str(word) for word in words], check=True, capture_output=True).stdout)


def _judge(bench, name: str, batch: int, results: list) -> None:
    title = name if batch == SINGLE else f"{name}, {batch} at once"
    coverage = statistics.mean(100 * (one["used"] - one["late"]) / max(one["used"] + one["missed"], 1)
                               for one in results)
    accuracy = statistics.mean(100 * one["used"] / max(one["fetched"], 1) for one in results)
    waste = statistics.mean(100 * (one["fetched"] - one["used"]) / one["read"] for one in results)
    cost = statistics.mean(one["ns_per_access"] for one in results)
    detail = f"{waste:.1f} % in vain, {cost:.0f} ns an access"
    bench.at_most(f"{title}: cost of an access", cost, NS_PER_ACCESS, "ns")
    if name in WITHOUT_PATTERN:
        bench.at_most(f"{title}: fetched in vain", waste, 2, "%", detail=detail)
        return
    coverage_goal, accuracy_goal = GOALS.get(name, REGULAR[batch])
    bench.at_least(f"{title}: coverage", coverage, coverage_goal, "%", detail=detail)
    bench.at_least(f"{title}: accuracy", accuracy, accuracy_goal, "%")
