# SPDX-License-Identifier: Apache-2.0
"""What is fetched ahead of its use: how much of what a program reads arrives in time, and how much is read in vain.

A program reads pieces of a file on the throttled disk and computes between them. What coverage and accuracy are stands
in harness/fetches.py.
"""
import statistics

from harness import fetches
from harness.patterns import BLOCK, DRAWN, WITHOUT_PATTERN, drawn_pattern, new_seed, patterns, write_list

# Coverage and accuracy in percent.
GOALS = {
    "the same shuffle, from the second epoch": (90, 95),
    "walks through one descriptor": (95, 95),
    "extents of unknown length": (85, 85),
    "a shuffle that changes, from the third epoch": (85, 95),
}
REGULAR = (95, 95)
COMPUTE_US = 6000  # a disk that does 240 requests a second keeps up with it


def run(bench):
    blocks, reads = (256, 40) if bench.quick else (2048, 1200)
    directory = bench.directory("hdd") if bench.quick else bench.testbed("hdd")
    file = directory / "data"
    bench.native(bench.worker("read_list", file, "--make", blocks * BLOCK))
    for name, order in patterns(blocks, reads).items():
        _measure(bench, file, blocks, name, order)
    seed = new_seed()
    for name in DRAWN:
        _measure(bench, file, blocks, name, drawn_pattern(name, seed, blocks, reads))


def _measure(bench, file, blocks: int, name: str, order) -> None:
    path = bench.scratch / "list"
    write_list(path, order)
    compute = 200 if bench.quick else COMPUTE_US
    words = bench.worker("read_list", file, "--list", path, "--compute-us", compute)
    # Where epochs repeat, RAM holds a quarter of them, so that what is read again was not simply kept.
    ram = blocks * BLOCK // 4
    ours, ahead = fetches.run(bench, words, file.parent, ram)
    detail = f"{ahead}; I/O {ours['io_ns'] / 1e9:.3g} s"
    waste = 100 * (ahead.fetched - ahead.used) / max(ours["bytes"], 1)
    if name in WITHOUT_PATTERN:
        bench.at_most(f"{name}: fetched in vain", waste, 2, "%", detail=detail)
        none = "prefetch:\n  budget: 0\n"
        pairs = bench.in_turns(lambda: fetches.run(bench, words, file.parent, ram)[0]["wall_ns"],
                               lambda: fetches.run(bench, words, file.parent, ram, none)[0]["wall_ns"])
        ratio = statistics.median(ours / without for ours, without in pairs)
        bench.at_most(f"{name}: run time against none fetched ahead", ratio, 1.02, "x")
        return
    coverage_goal, accuracy_goal = GOALS.get(name, REGULAR)
    # What the first epoch reads nobody can know.
    unknowable = BLOCK * len(set(order[:order.index(None)])) if None in order else 0
    bench.at_least(f"{name}: coverage", ahead.coverage(unknowable), coverage_goal, "%", detail=detail)
    bench.at_least(f"{name}: accuracy", ahead.accuracy(), accuracy_goal, "%")
