# SPDX-License-Identifier: Apache-2.0
"""Runs one program of bench/suites/paper.py under each system in turns, with its contents verified."""
import dataclasses
import json
import os
import shutil
import statistics
import sys
import time
import typing

from . import paper_systems


@dataclasses.dataclass(frozen=True)
class Workload:
    """A program and its size. command(directory) is its command line up to what only a measured run gets.

    phase_bytes, compute_ratio: it computes between phases for this part of the time that the store itself needs for a
    phase of all processes. reads: it reads back what it wrote, so that the kernel's caches are emptied before it does.
    """
    experiment: str
    case: str
    store: str
    data_bytes: int
    systems: tuple
    command: typing.Callable
    phase_bytes: int = 0
    compute_ratio: float = 0
    reads: bool = False

    @property
    def name(self) -> str:
        return f"{self.experiment}, {self.case}, {self.store}"


@dataclasses.dataclass(frozen=True)
class Outcome:
    """Seconds: in the program's I/O calls (all, writes, reads), of the whole program, until everything was stored.

    stored begins when the command is given, so that it includes what starting and ending a node costs.
    """
    io: float
    write: float
    read: float
    program: float
    stored: float
    # The part of the written bytes that no tier took.
    through: float


class Series:
    """What one workload measured: a list of outcomes for each system, one from each round."""

    def __init__(self, workload: Workload, rate: float):
        self.workload = workload
        self.rate = rate
        self.outcomes = {}
        self.skipped = {}

    def has(self, key: str) -> bool:
        return bool(self.outcomes.get(key))

    def median(self, key: str, quantity: str) -> float:
        return statistics.median(getattr(outcome, quantity) for outcome in self.outcomes[key])

    def fastest(self, keys, quantity: str) -> str:
        """The key of the system that needed least; "" when none of them ran."""
        return min((key for key in keys if self.has(key)), default="",
                   key=lambda key: self.median(key, quantity))

    def ratio(self, slower: str, faster: str, quantity: str) -> float:
        """How many times longer the first took: the median over the rounds, each compared within itself."""
        return statistics.median(
            getattr(first, quantity) / max(getattr(second, quantity), 1e-9)
            for first, second in zip(self.outcomes[slower], self.outcomes[faster]))


def measure(bench, bed: paper_systems.Bed, workload: Workload, rounds: int) -> Series:
    """Raises Skip when the store is not to be had."""
    series = Series(workload, bed.rate(workload.store))
    for key in workload.systems:
        missing = bed.missing_option(paper_systems.find(key))
        if missing:
            series.skipped[key] = f"cairn has no {missing}"
        else:
            series.outcomes[key] = []
    for _ in range(rounds):
        for key in list(series.outcomes):
            outcome = _run(bench, bed, workload, paper_systems.find(key))
            _say(bench, workload, key, outcome)
            if key in paper_systems.BURST_BUFFERS and outcome.through > paper_systems.THROUGH_MAX:
                del series.outcomes[key]
                series.skipped[key] = (f"not a burst buffer: {outcome.through:.0%} of what {key} was given went "
                                       "straight to the store")
            else:
                series.outcomes[key].append(outcome)
    return series


def _run(bench, bed, workload: Workload, system) -> Outcome:
    store = bed.store(workload.store)
    directory = store / "data"
    directory.mkdir()
    command = workload.command(directory)
    running = list(command)
    if workload.compute_ratio:
        seconds = workload.compute_ratio * workload.phase_bytes / bed.rate(workload.store)
        running += ["--compute-ms", round(1000 * seconds)]
    if workload.reads and not bench.quick:
        # Only direct has pages that cannot be dropped before they are stored. What Cairn wrote to the store in the
        # background is bounded by the device's dirty limit; to synchronise would be to wait for its flusher.
        running += ["--drop-caches", 1, "--sync", 0 if system.tiers else 1]
    _settle(store)
    begin = time.monotonic()
    text = bench.output([*bed.prefix(system, store, workload.data_bytes), *running])
    if not system.tiers:
        _settle(store)
    stored = time.monotonic() - begin
    through = bed.through(system)
    # Natively, past Cairn: what counts is what the store holds. A time is worth nothing before this has passed.
    bench.native([*command, "--check", 1])
    shutil.rmtree(directory)
    _settle(store)
    times = {name: value / 1e9 for name, value in json.loads(text).items()}
    return Outcome(times["io_ns"], times["write_ns"], times["read_ns"], times["wall_ns"], stored,
                   through)


def _settle(directory) -> None:
    """Everything that was written anywhere is stored: nothing of one run is left for the next one."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    os.sync()


def _say(bench, workload: Workload, key: str, outcome: Outcome) -> None:
    """Progress, for a person who waits; the results come at the end."""
    if not bench.quick:
        print(f"  {workload.name}, {key}: I/O {outcome.io:.2f} s, stored after {outcome.stored:.2f} s, "
              f"{outcome.through:.0%} written through", file=sys.stderr, flush=True)
