# SPDX-License-Identifier: Apache-2.0
"""Memory of a node that holds a million files of 4 KiB, against the bytes of those files."""
from harness import memory

SIZE = 4096


def run(bench):
    files = 20_000 if bench.quick else 1_000_000
    if not bench.quick:
        bench.need_memory(10, "a million files in the RAM tier")
    managed = bench.directory("managed")
    with bench.node("--ram", bench.size("6G", "256M")) as node:
        before = memory.of_node(node)
        plan = [managed, "--count", files, "--size", SIZE]
        written = node.run(bench.worker("many_files", *plan, "--mode", "write"), managed)
        held = memory.of_node(node)
        read = node.run(bench.worker("many_files", *plan, "--mode", "check"), managed)
        counters = node.status()["counters"]
        node.drain()
    bench.at_most("memory / bytes of the files", held.total / (files * SIZE), 1.4, "x",
                  detail=f"{held.tier >> 20} MiB of buckets, {held.control >> 20} MiB of bookkeeping, "
                         f"{held.private >> 20} MiB of the service (empty: {before.total >> 20} MiB)")
    bench.note(f"write {written['ns'] / 1e3:.1f} us, read {read['ns'] / 1e3:.1f} us per file; "
               f"{counters['read_hits']} of {counters['reads']} reads were hits")
