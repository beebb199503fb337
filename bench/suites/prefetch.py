# SPDX-License-Identifier: Apache-2.0
"""What is fetched ahead of its use: how much of what a program reads arrives in time, and how much is read in vain.

A program reads pieces of a file on the throttled disk and computes between them. Coverage: of the bytes that would
have been missed, those that were there when they were asked for. Accuracy: of the bytes that were fetched ahead,
those that were used. Both are the node's own counters (`cairn status`), for a new node each.
"""
import statistics

from harness.patterns import BLOCK, patterns, write_list

MIB = 1 << 20
# Of a hundred: coverage and accuracy.
GOALS = {"the same shuffle, from the second epoch": (90, 95)}
REGULAR = (95, 95)
WITHOUT_PATTERN = ("random", "skewed irregular")
COMPUTE_US = 6000  # a disk that does 240 requests a second keeps up with it


def run(bench):
    blocks, reads = (256, 40) if bench.quick else (2048, 1200)
    directory = bench.directory("hdd") if bench.quick else bench.testbed("hdd")
    file = directory / "data"
    bench.native(bench.worker("read_list", file, "--make", blocks * BLOCK))
    for name, order in patterns(blocks, reads).items():
        _measure(bench, file, blocks, name, order)


def _measure(bench, file, blocks: int, name: str, order) -> None:
    path = bench.scratch / "list"
    write_list(path, order)
    compute = 200 if bench.quick else COMPUTE_US
    words = bench.worker("read_list", file, "--list", path, "--compute-us", compute)
    ours, fetched, missed = _run(bench, file, blocks, words)
    used, late = fetched["used_bytes"], fetched["late_bytes"]
    detail = f"{used // MIB} of {fetched['fetched_bytes'] // MIB} MiB used, {late // MIB} late, {missed // MIB} " \
             f"missed; I/O {ours['io_ns'] / 1e9:.3g} s"
    waste = 100 * (fetched["fetched_bytes"] - used) / max(ours["bytes"], 1)
    if name in WITHOUT_PATTERN:
        bench.at_most(f"{name}: fetched in vain", waste, 2, "%", detail=detail)
        pairs = bench.in_turns(lambda: _run(bench, file, blocks, words)[0]["wall_ns"],
                               lambda: _run(bench, file, blocks, words, "prefetch:\n  budget: 0\n")[0]["wall_ns"])
        ratio = statistics.median(ours / without for ours, without in pairs)
        bench.at_most(f"{name}: run time against none fetched ahead", ratio, 1.02, "x")
        return
    coverage_goal, accuracy_goal = GOALS.get(name, REGULAR)
    if None in order:  # what the first epoch reads nobody can know
        missed = max(0, missed - BLOCK * len(set(order[:order.index(None)])))
    coverage = 100 * (used - late) / max(used + missed, 1)
    bench.at_least(f"{name}: coverage", coverage, coverage_goal, "%", detail=detail)
    bench.at_least(f"{name}: accuracy", 100 * used / max(fetched["fetched_bytes"], 1), accuracy_goal, "%")


def _run(bench, file, blocks: int, words, config: str = ""):
    """What the program printed, the sums of what was fetched ahead, and the bytes that it missed."""
    # Where epochs repeat, RAM holds a quarter of them, so that what is read again was not simply kept.
    settings = bench.scratch / "prefetch.yaml"
    settings.write_text(config or "prefetch:\n  budget: 25\n")
    bench.drop_caches()
    with bench.node("--ram", blocks * BLOCK // 4, "--config", settings) as node:
        result = node.run(words, file.parent)
        status = node.status()
    sums = {key: sum(entry[key] for entry in status["fetches"])
            for key in ("fetched_bytes", "used_bytes", "late_bytes", "evicted_unused_bytes")}
    return result, sums, status["counters"]["read_miss_bytes"]
