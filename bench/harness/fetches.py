# SPDX-License-Identifier: Apache-2.0
"""What a node fetches ahead of a program, by the node's own counters (`cairn status`), for a new node each time.

Coverage: of the bytes that would have been missed, those that were there when they were asked for. Accuracy: of the
bytes that were fetched ahead, those that were used.
"""
import dataclasses

MIB = 1 << 20


@dataclasses.dataclass
class Fetches:
    """Bytes."""
    fetched: int
    used: int
    late: int
    missed: int

    def coverage(self, unknowable: int = 0) -> float:
        """Percent; what nobody can know is not missed."""
        return 100 * (self.used - self.late) / max(self.used + max(0, self.missed - unknowable), 1)

    def accuracy(self) -> float:
        return 100 * self.used / max(self.fetched, 1)

    def __str__(self):
        return f"{self.used // MIB} of {self.fetched // MIB} MiB used, {self.late // MIB} late, " \
               f"{self.missed // MIB} missed"


def run(bench, words, buffer, ram: int, config: str = "prefetch:\n  budget: 25\n"):
    """What the program printed, and what was fetched for it. The kernel has nothing of its files before."""
    settings = bench.scratch / "prefetch.yaml"
    settings.write_text(config)
    bench.drop_caches()
    with bench.node("--ram", ram, "--config", settings) as node:
        result = node.run(words, buffer)
        status = node.status()
    sums = (sum(entry[key] for entry in status["fetches"]) for key in ("fetched_bytes", "used_bytes", "late_bytes"))
    return result, Fetches(*sums, status["counters"]["read_miss_bytes"])
