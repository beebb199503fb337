# SPDX-License-Identifier: Apache-2.0
"""Read hits while the organizer moves blocks at full rate, against the same reads while it rests.

RAM is filled with a pinned file; to unpin it is to let all of it leave for the file tier at once, without a program
that writes. Pinned again it comes back. The readers' own files are pinned in RAM and in the file tier.
"""
import dataclasses
import statistics
import subprocess
import time

from harness.errors import BenchError
from harness.reader import Reader

TIER = "tier1"  # as a node calls its first file tier
CONFIG = "evict:\n  low_percent: 5\n  high_percent: 80\n"
MIB = 1 << 20


@dataclasses.dataclass(frozen=True)
class Sizes:
    """MiB of RAM, of the file that moves, and of each file that is read; milliseconds of reading."""
    ram: int
    bulk: int
    hot: int
    window: int


QUICK = Sizes(64, 46, 16, 50)
# A disk of 240 requests a second moves less, and takes longer for as many reads.
SIZES = {"nvme": Sizes(1024, 864, 128, 400), "ssd": Sizes(1024, 864, 128, 400), "hdd": Sizes(256, 214, 32, 2000)}


def run(bench):
    for device, sizes in SIZES.items():
        tier = bench.directory(device) if bench.quick else bench.testbed(device)
        _measure(bench, device, tier, QUICK if bench.quick else sizes)


def _measure(bench, device: str, tier, sizes: Sizes) -> None:
    if not bench.quick:
        bench.need_memory(4, "a RAM tier, and the files that fill it")
    ram, bulk, hot = sizes.ram * MIB, sizes.bulk * MIB, sizes.hot * MIB
    files = bench.directory(f"files-{device}")
    config = bench.scratch / "organizer.yaml"
    config.write_text(CONFIG)
    with bench.node("--ram", ram, "--tier", f"{tier}:{2 * ram}", "--config", config,
                    name=f"bench-{device}") as node:
        for name, size in (("bulk", bulk), ("in-ram", hot), ("in-tier", hot)):
            bench.native(bench.worker("sequential_write", files / name, "--size", size, "--verify", 0))
        _pin(bench, node, files / "in-ram", "ram")
        _pin(bench, node, files / "in-tier", TIER)
        for name, place in (("in-ram", "RAM"), ("in-tier", device)):
            with Reader(bench, node, files / name, files) as reader:
                rounds = [_round(bench, node, reader, files / "bulk", sizes.window) for _ in range(bench.pairs)]
            for way in ("down", "up"):
                _record(bench, f"{place} reads of 4 KiB, moving {way} {'to' if way == 'down' else 'from'} {device}",
                        [(one["idle"], one[way]) for one in rounds])


def _await_first(rate) -> None:
    """A busy machine takes its time to begin."""
    deadline = time.monotonic() + 10
    while rate.so_far() == 0 and time.monotonic() < deadline:
        time.sleep(0.002)


def _round(bench, node, reader, bulk, window: int) -> dict:
    """What the reader saw while all was quiet, while the bulk file went down, and while it came up again."""
    _pin(bench, node, bulk, "ram")
    node.drain()
    results = {"idle": reader.read_for(window)}
    rate = Rate(node, "ram", TIER)
    bench.output([bench.cairn, "unpin", "--node", node.name, bulk])
    _await_first(rate)
    results["down"] = {**reader.read_for(window), "moved": rate.so_far()}
    _wait_until_at_rest(node)
    rate = Rate(node, TIER, "ram")
    pin = subprocess.Popen(_pin_words(bench, node, bulk, "ram"), env=bench.environment, stderr=subprocess.DEVNULL)
    _await_first(rate)
    results["up"] = {**reader.read_for(window), "moved": rate.so_far()}
    if pin.wait(600) != 0:
        raise BenchError("the bulk file could not be pinned")
    if min(results[way]["moved"] for way in ("down", "up")) == 0:
        raise BenchError("nothing moved while the reader was measured")
    return results


def _wait_until_at_rest(node) -> None:
    seen = -1
    while seen != (seen := _moved(node, "ram", TIER)):
        time.sleep(0.3)


def _record(bench, name: str, pairs) -> None:
    ratio = statistics.median(moving["p99_ns"] / idle["p99_ns"] for idle, moving in pairs)
    times = {key: [statistics.median(side[key] for side in sides) / 1000 for sides in zip(*pairs)]
             for key in ("p50_ns", "p99_ns")}
    rate = statistics.median(moving["moved"] for _, moving in pairs) / MIB
    bench.at_most(f"p99, {name}", ratio, 1.5, "x",
                  detail=f"p99 {times['p99_ns'][1]:.3g} against {times['p99_ns'][0]:.3g} us, "
                         f"p50 {times['p50_ns'][1]:.3g} against {times['p50_ns'][0]:.3g} us, {rate:.0f} MiB/s moved")


def _pin_words(bench, node, path, tier: str) -> list:
    return [bench.cairn, "pin", "--node", node.name, "--tier", tier, path]


def _pin(bench, node, path, tier: str) -> None:
    bench.output(_pin_words(bench, node, path, tier))


def _moved(node, origin: str, target: str) -> int:
    return sum(move["bytes"] for move in node.status()["moves"]
               if move["from"] == origin and move["to"] == target)


class Rate:
    """Bytes a second that move one way, from now on."""

    def __init__(self, node, origin: str, target: str):
        self._way = (node, origin, target)
        self._before = _moved(*self._way)
        self._began = time.monotonic()

    def so_far(self) -> float:
        moved = _moved(*self._way) - self._before
        return moved / (time.monotonic() - self._began)
