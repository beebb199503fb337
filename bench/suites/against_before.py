# SPDX-License-Identifier: Apache-2.0
"""The hot path against another build of Cairn: reads and overwrites of a file in the RAM tier, and a new file.

Two nodes live side by side, and their processes take turns, so that both builds see the same machine from second to
second. The one that starts first gets other memory than the second, which alone makes up to a tenth: each comparison
is made in both orders, and its value is the geometric mean of the two.
"""
import contextlib
import math
import os
import pathlib
import statistics

from harness import errors, huge_pages

VARIABLE = "CAIRN_BENCH_BEFORE"
AT_MOST = 1.03
# What a round runs: the worker, its options, requests with their names.
WORKS = {
    "reads": (("random_io",), {64: "64 B", 512: "512 B", 4096: "4 KiB", 65536: "64 KiB"}),
    "overwrites": (("random_io", "--mode", "write"), {4096: "4 KiB", 65536: "64 KiB", 1 << 20: "1 MiB"}),
}


def run(bench):
    before = os.environ.get(VARIABLE)
    if not before and not bench.quick:
        raise errors.Skip(f"{VARIABLE} names no build directory of the commit to compare with")
    builds = {"after": bench.cairn, "before": pathlib.Path(before).absolute() / "bin/cairn" if before else bench.cairn}
    if not builds["before"].exists():
        raise errors.BenchError(f"{VARIABLE}: {before} holds no bin/cairn; build that commit first")
    settings = {"as the machine is set": None} if bench.quick or os.geteuid() != 0 else \
        {"huge pages": "advise", "small pages": "never"}
    if not bench.quick:
        bench.need_memory(10, "a 1 GiB working set in two nodes, and a new file in each")
    for words, wanted in settings.items():
        with huge_pages.setting(wanted) if wanted else contextlib.nullcontext():
            _compare(bench, builds, "reads", words)
    _compare(bench, builds, "overwrites")
    _compare_new_files(bench, builds)


def _compare(bench, builds, work, words=None):
    (worker, *options), requests = WORKS[work]
    orders = []
    for order in (("after", "before"), ("before", "after")):
        def once(node, directory):
            command = bench.worker(worker, directory / work, *options, "--size", bench.size("1G", "16M"), "--requests",
                                   ",".join(map(str, requests)), "--slices", 2 if bench.quick else 100,
                                   "--slice-ms", 2)
            result = node.run(command, directory)
            _settle(node)
            return result

        orders.append(_in_turns(bench, builds, order, once))
    for request, name in requests.items():
        _judge(bench, ", ".join(filter(None, (f"{work} of {name}", words))), orders,
               lambda result, key=str(request): result[key]["ns"], "ns")


def _compare_new_files(bench, builds):
    def once(node, directory):
        result = node.run(bench.worker("sequential_write", directory / "new", "--size", bench.size("1G", "16M"),
                                       "--request", "1M"), directory)
        bench.output(node.command(["/bin/rm", directory / "new"], directory))
        _settle(node)
        return result

    orders = [_in_turns(bench, builds, order, once) for order in (("after", "before"), ("before", "after"))]
    _judge(bench, "a new file", orders, lambda result: result["total_ns"] / 1e6, "ms")


def _settle(node):
    """What one side left to be written must not slow the other side down."""
    node.drain()
    os.sync()


def _in_turns(bench, builds, order, once):
    """The results of each build, whose nodes start in this order."""
    results = {build: [] for build in order}
    with contextlib.ExitStack() as nodes:
        sides = {}
        for build in order:
            directory = bench.directory(build)
            for old in directory.iterdir():
                old.unlink()  # each node writes its file, none fetches one
            node = nodes.enter_context(bench.node("--ram", bench.size("3G", "128M"), name=build, cairn=builds[build]))
            once(node, directory)
            sides[build] = (node, directory)
        for turn in range(2 if bench.quick else 3 * bench.pairs):
            for build in order if turn % 2 == 0 else reversed(order):
                results[build].append(once(*sides[build]))
    return results


def _judge(bench, name, orders, key, unit):
    medians = [{build: statistics.median(map(key, results)) for build, results in order.items()} for order in orders]
    ratio = math.prod(each["after"] / each["before"] for each in medians) ** (1 / len(medians))
    said = "; ".join(f"{each['after']:.4g} against {each['before']:.4g}" for each in medians)
    bench.at_most(name, ratio, AT_MOST, "x", detail=f"{said} {unit}")
