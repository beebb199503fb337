# SPDX-License-Identifier: Apache-2.0
"""Processor time that a node uses while nothing happens."""
import pathlib
import time


def run(bench):
    managed = bench.directory("managed")
    seconds = 1 if bench.quick else 10
    with bench.node("--ram", bench.size("1G", "128M")) as node:
        # It has served a program before: idle must also mean idle again.
        node.run(bench.worker("sequential_write", managed / "file", "--size", "16M"), managed)
        node.drain()
        time.sleep(1 if bench.quick else 3)
        stretch = seconds * (1 if bench.quick else 3)
        before, woken_before = _processor_ms(node.service_pid), _wake_ups(node.service_pid)
        time.sleep(stretch)
        used = _processor_ms(node.service_pid) - before
        woken = _wake_ups(node.service_pid) - woken_before
    # The mean of it all: a service that works in one stretch of three is not idle.
    bench.at_most("idle node, 10 s", used * 10 / stretch, 10, "ms")
    bench.at_most("wake-ups of its threads, 10 s", woken * 10 / stretch, 5, "")


def _wake_ups(pid: int) -> int:
    """How often threads have left the processor of their own accord: as often as they were woken."""
    lines = [line for thread in pathlib.Path(f"/proc/{pid}/task").iterdir()
             for line in (thread / "status").read_text().splitlines()]
    return sum(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches"))


def _processor_ms(pid: int) -> float:
    """The time of all threads, from the scheduler: /proc/<pid>/stat counts in steps of 10 ms, the target itself."""
    total = 0
    for thread in pathlib.Path(f"/proc/{pid}/task").iterdir():
        total += int((thread / "schedstat").read_text().split()[0])
    return total / 1e6
