# SPDX-License-Identifier: Apache-2.0
"""The checkpoint program over the throttled disk: direct, and under a private node of `cairn run`."""
import dataclasses
import json
import os
import shutil
import statistics
import time

from . import device_rate

PROCESSES = 2
PHASES = 16
# Two direct runs of 20 s on one throttled disk differ by about this part.
NOISE = 0.02


@dataclasses.dataclass(frozen=True)
class Outcome:
    """Seconds: in the program's I/O calls, of the whole program, until everything was stored."""
    io: float
    program: float
    stored: float


def measure(bench, fsync: bool) -> None:
    disk = bench.directory("disk") if bench.quick else bench.testbed("hdd")
    if not bench.quick:
        bench.need_memory(6, "a 2 GiB burst in the RAM tier")
    phases, megabytes = (2, 1) if bench.quick else (PHASES, 64)
    total = PROCESSES * phases * megabytes << 20
    shape = ["--processes", PROCESSES, "--phases", phases, "--bytes", f"{megabytes}M"]
    writing = [*shape, "--pause-ms", 20 if bench.quick else 200, "--fsync", int(fsync)]

    def run(prefix) -> Outcome:
        directory = disk / "checkpoints"
        directory.mkdir()
        begin = time.monotonic()
        command = [*prefix, *bench.worker("checkpoint", directory, *writing)]
        result = json.loads(bench.output(command))
        if not prefix:
            _sync(disk)
        stored = time.monotonic() - begin
        # Natively, past Cairn: what counts is what the disk holds.
        bench.native(bench.worker("checkpoint", directory, *shape, "--check", 1))
        shutil.rmtree(directory)
        _sync(disk)
        return Outcome(result["io_ns"] / 1e9, result["wall_ns"] / 1e9, stored)

    cairn = [str(bench.cairn), "run", "--no-report", "--ram", bench.size("3G", "128M"), "--buffer",
             str(disk), "--"]
    rate = 0 if bench.quick else device_rate.sequential_write(bench, disk)
    pairs = bench.in_turns(lambda: run(cairn), lambda: run([]))
    _record(bench, pairs, fsync, total, rate)


def _record(bench, pairs, fsync: bool, total: int, rate: float) -> None:
    if fsync:
        bench.speed_up("program, fsync in each phase", pairs, lambda outcome: outcome.program, 1, "s",
                       noise=NOISE)
        bench.speed_up("I/O time, fsync in each phase", pairs, lambda outcome: outcome.io, 1, "s",
                       noise=NOISE)
        bench.note(f"both sides run at the device's rate; {NOISE:.0%} is the noise of two equal runs")
        return
    bench.speed_up("program-visible I/O", pairs, lambda outcome: outcome.io, 10, "s")
    least = [max(ours.program, total / rate if rate else 0) for ours, _direct in pairs]
    ratio = statistics.median(ours.stored / floor for (ours, _direct), floor in zip(pairs, least))
    bench.at_most("until all is stored / max(program, bytes / rate)", ratio, 1.05, "x",
                  detail=f"{statistics.median(ours.stored for ours, _ in pairs):.2f} s, "
                         f"device {rate / 1e6:.1f} MB/s, direct "
                         f"{statistics.median(direct.stored for _, direct in pairs):.2f} s")


def _sync(directory) -> None:
    """Stores what this file system holds, and nothing of the other ones."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    os.sync()
