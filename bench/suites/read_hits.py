# SPDX-License-Identifier: Apache-2.0
"""Random reads of a file that is in the RAM tier, against pread from the ext4 page cache."""
from harness import huge_pages

# Request size: at least how many times faster, with huge pages and without.
TARGETS = {64: (5, 4), 512: (4.5, 4), 4096: (1.7, 1.5), 65536: (1, 0.95), 1 << 20: (0.95, 0.9)}


def run(bench):
    if bench.quick:
        _measure(bench, "as the machine is set", 0)
        return
    bench.need_root("switches huge pages of shared memory on and off")
    bench.need_memory(6, "a 1 GiB working set in two caches")
    for column, (wanted, words) in enumerate((("advise", "huge pages"), ("never", "small pages"))):
        with huge_pages.setting(wanted):
            _measure(bench, words, column)


def _measure(bench, words: str, column: int) -> None:
    size = bench.size("1G", "16M")
    requests = ",".join(map(str, TARGETS))
    managed, plain = bench.directory("managed"), bench.directory("native")

    def worker(directory):
        return bench.worker("random_io", directory / "reads", "--size", size, "--requests", requests,
                            "--slices", 2 if bench.quick else 15)

    with bench.node("--ram", bench.size("2G", "128M")) as node:
        node.run(worker(managed), managed)
        node.drain()
        pairs = bench.in_turns(lambda: node.run(worker(managed), managed),
                               lambda: bench.native(worker(plain)))
        huge = [tier.get("huge_pages") for tier in node.status()["tiers"] if tier["kind"] == "ram"]
        bench.note(f"{words}: the RAM tier says huge_pages={huge[0] if huge else '?'}")
    for request, targets in TARGETS.items():
        bench.speed_up(f"{_name(request)}, {words}", pairs,
                       lambda result, key=str(request): result[key]["ns"], targets[column])


def _name(request: int) -> str:
    return {64: "64 B", 512: "512 B", 4096: "4 KiB", 65536: "64 KiB", 1 << 20: "1 MiB"}[request]
