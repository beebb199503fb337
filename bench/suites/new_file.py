# SPDX-License-Identifier: Apache-2.0
"""A fresh process writes a new file in 1 MiB calls, against the same on tmpfs."""
import contextlib
import os

from harness import huge_pages


def run(bench):
    size = bench.size("1G", "16M")
    if not bench.quick:
        bench.need_memory(7, "a 1 GiB file in two places")
    managed = bench.directory("managed")

    def worker(directory):
        return bench.worker("sequential_write", directory / "new", "--size", size, "--request", "1M")

    def ours():
        result = node.run(worker(managed), managed)
        node.drain()
        bench.output(node.command(["/bin/rm", managed / "new"], managed))
        return result

    def theirs():
        result = bench.native(worker(bench.memory))
        (bench.memory / "new").unlink()
        return result

    advised = (huge_pages.setting("advise") if os.geteuid() == 0 and not bench.quick
               else contextlib.nullcontext())
    with advised, bench.node("--ram", bench.size("3G", "128M")) as node:
        pairs = bench.in_turns(ours, theirs)
    bench.speed_up("new file against tmpfs", pairs, lambda result: result["total_ns"] / 1e6, 1,
                   unit="ms")
