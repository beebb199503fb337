# SPDX-License-Identifier: Apache-2.0
"""What bench/suites/paper.py compares: the systems, and the storage that they work on.

Each system is a mode of the same command, so that nothing but the idea differs. A tier of RAM holds a quarter of the
data, NVMe half, and the solid-state disk all of it, as the one tier of the burst-buffer systems has to.
"""
import dataclasses
import json
import re

from . import device_rate
from .errors import BenchError, Skip

MEBIBYTE = 1 << 20
# Parts of the data that each tier holds. The last one has room for blocks that are only partly filled.
CAPACITY = {"ram": 0.25, "nvme": 0.5, "ssd": 1.25}
ALL_TIERS = ("ram", "nvme", "ssd")


@dataclasses.dataclass(frozen=True)
class System:
    """options: what `cairn run` gets besides its tiers. No tiers: the program runs without Cairn."""
    key: str
    title: str
    tiers: tuple = ()
    options: tuple = ()


SYSTEMS = {system.key: system for system in (
    System("direct", "direct"),
    # One shared burst buffer; a file moves on in the background as soon as it is closed.
    System("elevator", "Data Elevator-like", ("ssd",), ("--trigger", "per-file")),
    # The same, staged out when the job ends.
    System("datawarp", "DataWarp-like", ("ssd",), ("--trigger", "on-exit")),
    # No option: what a user gets who chooses nothing. That is max-bandwidth.
    System("cairn", "Cairn, default", ALL_TIERS),
    System("max-locality", "Cairn, max-locality", ALL_TIERS, ("--policy", "max-locality")),
    System("hot-data", "Cairn, hot-data", ALL_TIERS, ("--policy", "hot-data")),
)}
BURST_BUFFERS = ("elevator", "datawarp")
# A burst buffer that lets more than this part of its writes through to the store is none, and no baseline.
THROUGH_MAX = 0.05


class Bed:
    """The backing stores with their rates, the tiers' directories, and which systems this Cairn can be."""

    def __init__(self, bench):
        self._bench = bench
        self._stores = {}
        self._rates = {}
        self._report = bench.scratch / "report.json"
        self._help = bench.output([bench.cairn, "run", "--help"])
        self._tiers = {name: bench.directory(f"tier-{name}") if bench.quick else bench.testbed(name)
                       for name in ("nvme", "ssd")}

    def store(self, name: str):
        """A directory on the backing store "hdd" or "pfs", or the reason why there is none, as Skip."""
        if name not in self._stores:
            try:
                self._stores[name] = (self._bench.directory(f"store-{name}") if self._bench.quick
                                      else self._bench.testbed(name))
            except Skip as reason:
                self._stores[name] = reason
        if isinstance(self._stores[name], Skip):
            raise self._stores[name]
        return self._stores[name]

    def rate(self, name: str) -> float:
        """Bytes per second that the store takes sequentially, measured once in this run."""
        if name not in self._rates:
            self._rates[name] = (1e9 if self._bench.quick else
                                 device_rate.sequential_write(self._bench, self.store(name)))
        return self._rates[name]

    def missing_option(self, system: System) -> str:
        """The first option that this build's `cairn run` does not have; "" when it has all."""
        for option in system.options:
            if option.startswith("--") and not re.search(rf"(^|[\s,]){option}\b(?!-)", self._help):
                return option
        return ""

    def prefix(self, system: System, store, data_bytes: int) -> list:
        """What stands before a program's command line."""
        if not system.tiers:
            return []
        words = [str(self._bench.cairn), "run", "--no-report", "--report-json", str(self._report), "--ram",
                 self._capacity("ram", data_bytes) if "ram" in system.tiers else "0"]
        for tier in system.tiers:
            if tier != "ram":
                words += ["--tier", f"{self._tiers[tier]}:{self._capacity(tier, data_bytes)}"]
        return [*words, *system.options, "--buffer", str(store), "--"]

    def through(self, system: System) -> float:
        """The part of the bytes written in the last run that went straight to the store."""
        if not system.tiers:
            return 1.0
        report = json.loads(self._report.read_text())["report"]
        return report["write_through_bytes"] / max(1, report["written_bytes"])

    @staticmethod
    def _capacity(tier: str, data_bytes: int) -> str:
        return f"{max(1, round(CAPACITY[tier] * data_bytes / MEBIBYTE))}M"


def find(key: str) -> System:
    if key not in SYSTEMS:
        raise BenchError(f"no system is named '{key}'; there are {', '.join(SYSTEMS)}")
    return SYSTEMS[key]
