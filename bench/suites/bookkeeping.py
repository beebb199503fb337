# SPDX-License-Identifier: Apache-2.0
"""Memory for bookkeeping of a 16 GiB RAM tier with a 64 GiB file tier, against their capacity."""
import shutil

from harness import memory


def run(bench):
    # The same proportions; per-block bookkeeping dominates at any of these sizes.
    ram, file = (256, 1024) if bench.quick else (16 << 10, 64 << 10)
    scale = 1
    tier = bench.directory("tier")
    while not bench.quick and not _fits(tier, ram, file):
        ram, file, scale = ram // 2, file // 2, scale * 2
    if scale > 1:
        bench.note(f"measured at 1/{scale} of the size: no room here for more")
    with bench.node("--ram", f"{ram}M", "--tier", f"{tier}:{file}M") as node:
        status = node.status()
        capacity = sum(tier["capacity_bytes"] for tier in status["tiers"])
        control = status.get("control_bytes")
        if control is None:
            control = sum(size for size, _allocated in memory.segment_sizes(node.service_pid)[:-1])
    bench.at_most("bookkeeping / capacity", 100 * control / capacity, 1.5, "%",
                  detail=f"{control / 2**20:.0f} MiB for {capacity / 2**30:.2f} GiB")


def _fits(tier, ram_megabytes: int, file_megabytes: int) -> bool:
    """With room to spare: others use this machine, too."""
    available = next(int(line.split()[1]) / 1024 for line in open("/proc/meminfo")
                     if line.startswith("MemAvailable"))
    free = shutil.disk_usage(tier).free / 2**20
    return ram_megabytes * 1.3 < available and file_megabytes * 1.1 < free
