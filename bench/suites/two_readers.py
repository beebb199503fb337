# SPDX-License-Identifier: Apache-2.0
"""Two processes read one file that is in the RAM tier, against one process."""
import os


def run(bench):
    if len(os.sched_getaffinity(0)) < 2:
        bench.note("this machine has one processor: two readers cannot be faster than one")
    managed = bench.directory("managed")
    cases = {4096: "4 KiB random reads", 65536: "64 KiB random reads"}

    def worker(request, processes):
        return bench.worker("random_io", managed / "shared", "--size", bench.size("512M", "16M"),
                            "--requests", request, "--processes", processes,
                            "--slices", 2 if bench.quick else 15)

    with bench.node("--ram", bench.size("1G", "128M")) as node:
        node.run(worker(4096, 1), managed)
        node.drain()
        for request, name in cases.items():
            pairs = bench.in_turns(lambda r=request: node.run(worker(r, 2), managed),
                                   lambda r=request: node.run(worker(r, 1), managed))
            bench.speed_up(name, pairs, lambda result, key=str(request): result[key]["ns"], 1.8)
