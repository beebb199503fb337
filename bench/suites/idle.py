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
        values = []
        for _ in range(1 if bench.quick else 3):
            before = _processor_ms(node.service_pid)
            time.sleep(seconds)
            values.append(_processor_ms(node.service_pid) - before)
    # The least of the stretches: an interrupt charged to the service is not its work.
    bench.at_most("idle node, 10 s", min(values) * 10 / seconds, 10, "ms")


def _processor_ms(pid: int) -> float:
    """Of all threads, from the scheduler: /proc/<pid>/stat counts in steps of 10 ms, the target itself."""
    total = 0
    for thread in pathlib.Path(f"/proc/{pid}/task").iterdir():
        total += int((thread / "schedstat").read_text().split()[0])
    return total / 1e6
