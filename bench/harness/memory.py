# SPDX-License-Identifier: Apache-2.0
"""How much memory a node really occupies."""
import dataclasses
import os
import pathlib


@dataclasses.dataclass(frozen=True)
class NodeMemory:
    """Bytes: used buckets of the RAM tier, pages of the control segment, the service's private memory."""
    tier: int
    control: int
    private: int

    @property
    def total(self) -> int:
        return self.tier + self.control + self.private


def of_node(node) -> NodeMemory:
    """The data segment is reserved as a whole, so of it the used buckets count; of the rest, every page."""
    status = node.status()
    tier = sum(tier["used_bytes"] for tier in status["tiers"] if tier["kind"] == "ram")
    segments = segment_sizes(node.service_pid)
    # The data segment is the largest one; everything else that is shared is bookkeeping.
    control = sum(allocated for _size, allocated in segments[:-1])
    rollup = pathlib.Path(f"/proc/{node.service_pid}/status").read_text()
    private = next(int(line.split()[1]) * 1024 for line in rollup.splitlines()
                   if line.startswith("RssAnon"))
    return NodeMemory(tier, control, private)


def segment_sizes(pid: int) -> list:
    """The memfds of a process as (size, allocated bytes), smallest first, each once."""
    found = {}
    for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            if os.readlink(entry).startswith("/memfd:"):
                status = entry.stat()
                found[status.st_ino] = (status.st_size, status.st_blocks * 512)
        except OSError:
            continue
    return sorted(found.values())
