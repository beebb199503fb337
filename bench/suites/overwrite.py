# SPDX-License-Identifier: Apache-2.0
"""Random overwrites of a file that is in the RAM tier, against pwrite to the ext4 page cache and tmpfs."""
import contextlib
import os

from harness import huge_pages

EXT4_TARGETS = {4096: ("4 KiB", 20), 65536: ("64 KiB", 4), 1 << 20: ("1 MiB", 1.4)}
TMPFS_TARGETS = {4096: ("4 KiB", 1.8), 1 << 20: ("1 MiB", 1.3)}


def run(bench):
    size = bench.size("1G", "16M")
    if not bench.quick:
        bench.need_memory(7, "a 1 GiB working set in three caches")
    managed, plain = bench.directory("managed"), bench.directory("native")

    def worker(directory, targets):
        return bench.worker("random_io", directory / "overwrites", "--mode", "write", "--size", size,
                            "--requests", ",".join(map(str, targets)),
                            "--slices", 2 if bench.quick else 10)

    def settle():
        # What one side left to be written must not slow the other side down.
        node.drain()
        os.sync()

    def ours(targets):
        result = node.run(worker(managed, targets), managed)
        settle()
        return result

    def theirs(directory, targets):
        result = bench.native(worker(directory, targets))
        settle()
        return result

    advised = (huge_pages.setting("advise") if os.geteuid() == 0 and not bench.quick
               else contextlib.nullcontext())
    with advised, bench.node("--ram", bench.size("2G", "128M")) as node:
        ext4 = bench.in_turns(lambda: ours(EXT4_TARGETS), lambda: theirs(plain, EXT4_TARGETS))
        tmpfs = bench.in_turns(lambda: ours(TMPFS_TARGETS),
                               lambda: theirs(bench.memory, TMPFS_TARGETS))
    for pairs, targets, words in ((ext4, EXT4_TARGETS, "ext4"), (tmpfs, TMPFS_TARGETS, "tmpfs")):
        for request, (name, target) in targets.items():
            bench.speed_up(f"{name} against {words}", pairs,
                           lambda result, key=str(request): result[key]["ns"], target)
