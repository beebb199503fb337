# SPDX-License-Identifier: Apache-2.0
"""One program of bench/suites/montage.py or wrf.py under four systems in turns, with its results compared.

none    Cairn that fetches nothing ahead, on a disk of which the kernel reads no more than a block ahead
kernel  without Cairn: the kernel reads ahead as far as the testbed's disk is set to (4 MiB)
ours    Cairn as it is by default
bound   Cairn with RAM for everything and its input staged in: nobody waits for the disk to read

All begin with cold caches. The first three have the same memory: a control group holds programs, tiers and the kernel's
cache together. Results are compared as they lie in the store, after the node is gone.
"""
import contextlib
import dataclasses
import hashlib
import os
import pathlib
import statistics
import sys
import typing

from . import memory_group
from .errors import BenchError
from .patterns import BLOCK

MIB = 1 << 20
SYSTEMS = ("none", "kernel", "ours", "bound")
ROUNDS = 2  # or less, by CAIRN_BENCH_PAIRS


@dataclasses.dataclass(frozen=True)
class Program:
    """command prints {"wall_ns": ...}, and {"io_ns": ...} where it measures its own calls.

    For programs that do not, the time of their I/O is what the node has counted inside their calls that read and write
    (`cairn status`); under `kernel` it is not known then.

    prepare() makes an empty place for what it writes; results(is_first) are its results' checksums by name, in the
    first round those of everything that it wrote.
    """
    name: str
    command: list
    buffer: pathlib.Path
    inputs: list
    data_bytes: int
    ram_bytes: int
    program_bytes: int  # that the processes themselves and the node need besides
    prepare: typing.Callable
    results: typing.Callable


@dataclasses.dataclass(frozen=True)
class Outcome:
    """Seconds: of the whole program, in its I/O calls if that is known, and until all was stored after its end."""
    wall: float
    io: float | None
    stored: float
    said: dict
    fetches: dict


def compare(bench, program: Program) -> list:
    """One dictionary for each round: the outcome of each system."""
    rounds = []
    for number in range(min(bench.pairs, ROUNDS)):
        outcomes, expected = {}, None
        for system in SYSTEMS:
            program.prepare()
            outcomes[system] = _run(bench, program, system)
            found = {**program.results(number == 0), "said": outcomes[system].said.get("checksum")}
            expected = expected or found
            if found != expected:
                wrong = [name for name in {**expected, **found} if expected.get(name) != found.get(name)]
                raise BenchError(f"{program.name}: results under '{system}' are not those under '{SYSTEMS[0]}': "
                                 f"{', '.join(sorted(wrong)[:5])}")
            _say(bench, program, system, outcomes[system])
        rounds.append(outcomes)
    program.prepare()
    return rounds


def judge(bench, program: Program, rounds: list, io_goal: float = 0, bound_goal: float = 0) -> None:
    """io_goal: how many times less time in I/O than none. bound_goal: the run time at most, as a multiple of bound's.

    Figures without a goal are shown and not judged.
    """
    io, wall = (_medians(rounds, quantity) for quantity in ("io", "wall"))
    if io_goal:
        ratio = statistics.median(outcomes["none"].io / outcomes["ours"].io for outcomes in rounds)
        bench.at_least(f"{program.name}: I/O time of none / ours", ratio, io_goal, detail=io)
    else:
        bench.note(f"{program.name}, I/O time: {io}")
    if bound_goal:
        share = statistics.median(outcomes["ours"].wall / outcomes["bound"].wall for outcomes in rounds)
        bench.at_most(f"{program.name}: run time / all in RAM", share, bound_goal, "x", detail=wall)
    else:
        bench.note(f"{program.name}, run time: {wall}")
    bench.note(f"{program.name}, ours: {_accounts(rounds[-1]['ours'].fetches)}")


def digests(directory: pathlib.Path, names) -> dict:
    found = {}
    for name in names:
        with open(directory / name, "rb") as file:
            found[str(name)] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def _run(bench, program: Program, system: str) -> Outcome:
    with contextlib.ExitStack() as stack:
        if not bench.quick:
            bench.drop_caches()
            if system != "bound":
                stack.enter_context(memory_group.limited(program.ram_bytes + program.program_bytes))
            if system == "none":
                stack.enter_context(_read_ahead(program.buffer, BLOCK >> 10))
        if system == "kernel":
            said, stored, counters, fetches = bench.native(program.command), 0.0, {}, {}
        else:
            said, stored, counters, fetches = _run_on_node(bench, program, system, stack)
    os.sync()
    io = said.get("io_ns", counters.get("io_time_ns"))
    return Outcome(said["wall_ns"] / 1e9, None if io is None else io / 1e9, stored, said, fetches)


def _run_on_node(bench, program: Program, system: str, stack):
    settings = bench.scratch / "system.yaml"
    settings.write_text("" if system == "ours" else "prefetch:\n  budget: 0\n")
    ram = 2 * program.data_bytes if system == "bound" else program.ram_bytes
    node = stack.enter_context(bench.node("--ram", ram, "--config", settings))
    if system == "bound":
        bench.output([bench.cairn, "stage-in", "--node", node.name, *program.inputs])
    said = node.run(program.command, program.buffer)
    stored = node.drain()
    status = node.status()
    if not status["counters"]["read_bytes"]:
        raise BenchError(f"{program.name}, {system}: the programs read nothing through Cairn")
    return said, stored, status["counters"], _fetches(status)


def _fetches(status: dict) -> dict:
    """Bytes: of each predictor, and of all reads that missed."""
    keys = ("fetched_bytes", "used_bytes", "late_bytes", "evicted_unused_bytes")
    found = {entry["predictor"]: [entry[key] for key in keys] for entry in status["fetches"]
             if entry["fetched_bytes"]}
    return {**found, "missed": status["counters"]["read_miss_bytes"]}


@contextlib.contextmanager
def _read_ahead(directory: pathlib.Path, kibibytes: int):
    """How far the kernel reads ahead on the device of the directory, for files that are opened meanwhile."""
    device = os.stat(directory).st_dev
    setting = pathlib.Path(f"/sys/class/bdi/{os.major(device)}:{os.minor(device)}/read_ahead_kb")
    before = setting.read_text()
    setting.write_text(str(kibibytes))
    try:
        yield
    finally:
        setting.write_text(before)


def _medians(rounds: list, quantity: str) -> str:
    medians = {}
    for system in SYSTEMS:
        seconds = [getattr(outcomes[system], quantity) for outcomes in rounds]
        if None not in seconds:
            medians[system] = statistics.median(seconds)
    return ", ".join(f"{system} {seconds:.3g}" for system, seconds in medians.items()) + " s"


def _accounts(fetches: dict) -> str:
    parts = [f"{name} {fetched // MIB} MiB fetched ahead, {used // MIB} used, {late // MIB} late, "
             f"{evicted // MIB} evicted unused" for name, (fetched, used, late, evicted)
             in ((name, sums) for name, sums in fetches.items() if name != "missed")]
    return "; ".join([*parts, f"{fetches['missed'] // MIB} MiB missed"])


def _say(bench, program: Program, system: str, outcome: Outcome) -> None:
    """Progress, for a person who waits; the results come at the end."""
    if bench.quick:
        return
    stages = {name: round(time / 1e9, 2) for name, time in outcome.said.get("stages", {}).items()}
    io = "" if outcome.io is None else f", {outcome.io:.2f} s in I/O calls"
    accounts = f"; {_accounts(outcome.fetches)}" if system == "ours" else ""
    print(f"  {program.name}, {system}: {outcome.wall:.2f} s{io}, all stored {outcome.stored:.2f} s later"
          f"{accounts} {stages or ''}", file=sys.stderr, flush=True)
