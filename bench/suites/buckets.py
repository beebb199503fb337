# SPDX-License-Identifier: Apache-2.0
"""Memory for requests, used and given back: buckets against malloc and tcmalloc, with the same copies.

A program is measured from its start on: it holds a burst of requests and gives them back, sixteen times, as in
the experiments of the papers. That is where a node's memory differs from a heap: it is there before the program
is and stays when it ends. A line below the table says how much of that is left once a heap is warm.
"""
import contextlib
import ctypes.util
import os
import statistics

from harness import huge_pages
from harness.errors import BenchError, Skip

REQUESTS = ("64K", "256K", "1M", "2M")
BURSTS = 16
# At least how many times faster than each peer: where one line of every page is written, so that a copy does
# not hide what the memory costs, and with the whole request copied in.
TARGETS = {"touch": {"malloc": 3, "tcmalloc": 2}, "copy": {"malloc": 3, "tcmalloc": 1}}
USES = {"touch": "a line of each page written", "copy": "copied in"}
PAIRS_PER_SECOND = 20
# The allocators, and the name that each gives itself.
ALLOCATORS = {"buckets": "buckets", "malloc": "glibc", "tcmalloc": "tcmalloc"}


def run(bench):
    library = ctypes.util.find_library("tcmalloc_minimal")
    if library is None:
        raise Skip("needs tcmalloc (Debian: libtcmalloc-minimal4)")
    allocators = _Allocators(bench, library)
    advised = (huge_pages.setting("advise") if os.geteuid() == 0 and not bench.quick
               else contextlib.nullcontext())
    with advised:
        for use, name in USES.items():
            for request in REQUESTS:
                _judge(bench, allocators.compare(request, use, "program"), f"{request}, {name}",
                       TARGETS[use])
        for use, name in USES.items():
            _note_warm(bench, allocators, use, name)
    _count_pairs(bench, allocators)


class _Allocators:
    """Runs the same plan with buckets, glibc's malloc and tcmalloc."""

    def __init__(self, bench, library: str):
        self._bench = bench
        self._library = library

    def ns(self, who: str, *options) -> float:
        """Nanoseconds per request."""
        source = "buckets" if who == "buckets" else "malloc"
        environment = dict(self._bench.environment)
        if who == "tcmalloc":
            environment["LD_PRELOAD"] = self._library
        command = self._bench.worker("buckets", "--from", source, *options)
        result = self._bench.native(command, environment=environment)
        if result["allocator"] != ALLOCATORS[who]:
            raise BenchError(f"{who} was to be measured, but {result['allocator']} was")
        return result["ns"]

    def compare(self, request: str, use: str, life: str) -> list:
        """In turns, each with bursts of the same size: {who: ns per request} of every turn."""
        held = self._bench.size("64M", "4M")
        requests = _bytes(held) // _bytes(request)
        options = ["--request", request, "--held", held, "--use", use, "--life", life, "--operations",
                   requests * (2 if self._bench.quick else BURSTS), "--rounds", 1]
        return [{who: self.ns(who, *options) for who in ALLOCATORS}
                for _ in range(self._bench.pairs)]


def _judge(bench, turns, name: str, targets: dict) -> None:
    for peer, target in targets.items():
        detail = f"{_median(turns, 'buckets') / 1e3:.3g} against {_median(turns, peer) / 1e3:.3g} us a request"
        bench.at_least(f"{name}, against {peer}", _ratio(turns, peer), target, detail=detail, noise=0.05)


def _note_warm(bench, allocators, use: str, name: str) -> None:
    ratios = []
    for request in REQUESTS:
        turns = allocators.compare(request, use, "steady")
        ratios.append(f"{request} {_ratio(turns, 'malloc'):.3g}x and {_ratio(turns, 'tcmalloc'):.2g}x")
    bench.note(f"later bursts of the same program, {name}, against malloc and tcmalloc: {', '.join(ratios)}")


def _count_pairs(bench, allocators) -> None:
    """Bookkeeping alone: a bucket is acquired and released, nothing is written into it."""
    count = 20_000 if bench.quick else 2_000_000
    for processes in (1, 2):
        options = ["--use", "none", "--operations", count, "--processes", processes]
        ns = statistics.median(allocators.ns("buckets", *options) for _ in range(bench.pairs))
        bench.at_least(f"acquire and release, {processes} proc.: per second and core", 1e3 / ns,
                       PAIRS_PER_SECOND, unit="M", detail=f"{ns:.1f} ns a pair", noise=0.05)
    for request in ("64K", "2M"):
        options = ["--use", "none", "--request", request, "--operations", count // 20]
        alone = [f"{who} {allocators.ns(who, *options):.0f} ns" for who in ALLOCATORS]
        bench.note(f"bookkeeping alone, one request of {request} at a time: {', '.join(alone)}")


def _median(turns, who: str) -> float:
    return statistics.median(turn[who] for turn in turns)


def _ratio(turns, peer: str) -> float:
    return statistics.median(turn[peer] / turn["buckets"] for turn in turns)


def _bytes(size: str) -> int:
    return int(size[:-1]) << {"K": 10, "M": 20}[size[-1]]
