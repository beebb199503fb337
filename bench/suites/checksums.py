# SPDX-License-Identifier: Apache-2.0
"""What checksums cost: a file that moves to the testbed's nvme and back, with checksums against without.

A node of each kind moves a file of its own in turns: `cairn pin` ends when all of it is in the tier that it names.
"""
import statistics
import time

TIER = "tier1"  # as a node calls its first file tier
MIB = 1 << 20


def run(bench):
    tier = bench.directory("nvme") if bench.quick else bench.testbed("nvme")
    if not bench.quick:
        bench.need_memory(6, "two RAM tiers and the testbed's disk")
    size = (32 if bench.quick else 768) * MIB
    compared, plain = (Mover(bench, kind, tier, size) for kind in ("movement", "off"))
    for way, target in (("down to nvme", TIER), ("up to RAM", "ram")):
        pairs = bench.in_turns(lambda: compared.move_to(target), lambda: plain.move_to(target))
        ours, theirs = (statistics.median(side) for side in zip(*pairs))
        bench.at_least(f"movement {way}", statistics.median(our / their for our, their in pairs), 0.97,
                       detail=f"{ours / MIB:.0f} against {theirs / MIB:.0f} MiB/s")


class Mover:
    """A node with one file that has its place in RAM or in the file tier."""

    def __init__(self, bench, kind: str, tier, size: int):
        self._bench, self._size = bench, size
        self._file = bench.directory(f"files-{kind}") / "bulk"
        self._node = bench.node("--ram", size + size // 4, "--tier", f"{tier}:{size + size // 4}",
                                "--checksums", kind, name=f"bench-{kind}")
        bench.native(bench.worker("sequential_write", self._file, "--size", size, "--verify", 0))

    def move_to(self, target: str) -> float:
        """Bytes a second, from the other tier."""
        self._pin("ram" if target == TIER else TIER)
        began = time.monotonic()
        self._pin(target)
        return self._size / (time.monotonic() - began)

    def _pin(self, tier: str) -> None:
        self._bench.output([self._bench.cairn, "pin", "--node", self._node.name, "--tier", tier, self._file])
