# SPDX-License-Identifier: Apache-2.0
"""An analysis of an array on a throttled disk, end to end, whose node service is killed in the middle.

Its successor goes on in the grids that the node has learned (memory/tiers/array_board.h).
With and without the death in turns; all begin with cold caches.
"""
import os
import signal
import statistics
import threading
import time

from harness.errors import BenchError, Skip
from harness.paper_report import interpreter

MIB = 1 << 20
SIDE = 320
PROCESSES = 4
COMPUTE_MS = 60


def run(bench):
    python = interpreter("h5py", install=not bench.quick)
    if not python:
        raise Skip("needs h5py in build/venv (./dev venv h5py)")
    side, compute_ms = (80, 20) if bench.quick else (SIDE, COMPUTE_MS)
    folder = (bench.directory("hdd") if bench.quick else bench.testbed("hdd")) / "analysis"
    folder.mkdir()
    file = folder / "a.h5"
    shape = ",".join([str(side)] * 3)
    bench.output(bench.python_worker(python, "array_batches", file, "--make", "--shape", shape))
    words = bench.python_worker(python, "array_batches", file, "--shape", shape, "--chunk",
                                ",".join([str(side // 8)] * 3), "--ghost", "1,1,1", "--processes", PROCESSES,
                                "--passes", 1, "--compute-ms", compute_ms)
    seconds, checksums = {False: [], True: []}, set()
    # Half of the time of the program itself, which computes as long as it is not in reads.
    half = 8 ** 3 // PROCESSES * compute_ms / 1000 / 2
    for _ in range(1 if bench.quick else bench.pairs):
        for is_killed in (False, True):
            outcome = _run(bench, words, folder, 4 * 3 * side ** 3 + 64 * MIB, half if is_killed else None)
            seconds[is_killed].append(outcome["wall_ns"] / 1e9)
            checksums.add(str(outcome["checksum"]))
    if len(checksums) != 1:
        raise BenchError("not all runs have read the same")
    calm, killed = (statistics.median(seconds[is_killed]) for is_killed in (False, True))
    bench.at_least("end to end with a death", calm / killed, 0.97,
                   detail=f"{killed:.2f} s, without {calm:.2f} s, medians of {len(seconds[True])}")


def _run(bench, words, folder, ram: int, death_after: float | None) -> dict:
    bench.drop_caches()
    node = bench.node("--ram", ram, name="bench-array-death")
    with node:
        service, killer = node.service_pid, None
        if death_after is not None:
            killer = threading.Thread(target=_kill_later, args=(service, death_after))
            killer.start()
        outcome = node.run(words, folder)
        if killer is not None:
            killer.join()
            node.service_pid = node.status()["service_pid"]
            if node.service_pid == service:
                raise BenchError("the service was not killed while the program ran")
    return outcome


def _kill_later(service: int, seconds: float) -> None:
    time.sleep(seconds)
    os.kill(service, signal.SIGKILL)
