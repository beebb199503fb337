# SPDX-License-Identifier: Apache-2.0
"""How long programs wait that need the service, when it is killed with 4 GiB of RAM tier that are half dirty.

Its successor takes the memory over meanwhile. Without a kill the same program shows how long a call takes else.
"""
import os
import signal
import statistics
import sys
import threading
import time

MIB = 1 << 20
BETWEEN_DEATHS = 31  # three within a minute would end in a rescue


def run(bench):
    if not bench.quick:
        bench.need_memory(8, "a RAM tier of 4 GiB, and its dirty half")
    size, seconds = (64, 1.5) if bench.quick else (4096, 6)
    files = bench.directory("files")
    node = bench.node("--ram", size * MIB, "--trigger", "on-exit")
    # Not by `cairn run`, which would store everything before it returns.
    environment = node.preload_environment(files)
    bench.native(bench.worker("sequential_write", files / "bulk", "--size", size // 2 * MIB, "--verify", 0),
                 environment=environment)
    command = bench.python_worker(sys.executable, "needs_service", files, "--seconds", seconds)
    undisturbed = bench.native(command, environment=environment)["longest"]
    waits = []
    for death in range(1 if bench.quick else bench.pairs):
        if death:
            time.sleep(BETWEEN_DEATHS)
        status = node.status()
        killer = threading.Thread(target=_kill_later, args=(status["service_pid"], seconds / 3))
        killer.start()
        waits.append(bench.native(command, environment=environment)["longest"])
        killer.join()
    bench.at_most("longest wait beside a death", max(waits), 1, "s",
                  detail=f"median {statistics.median(waits):.3f}, without a death {undisturbed:.3f}; "
                         f"{status['backing']['dirty_bytes'] // MIB} MiB dirty")


def _kill_later(service: int, seconds: float) -> None:
    time.sleep(seconds)
    os.kill(service, signal.SIGKILL)
