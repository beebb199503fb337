# SPDX-License-Identifier: Apache-2.0
"""Reads of what lies in a saturated file tier: a part of them left to the backing store, against all from the tier.

Several programs read pieces of 1 MiB, in random order, of files that are staged into a tier on the testbed's ssd;
the store is its hdd, a fifth as fast. At best both together are read from.
"""
import random
import statistics

MIB = 1 << 20
PROGRAMS = 4


def run(bench):
    size, reads = (4 * MIB, 16) if bench.quick else (192 * MIB, 1200)
    directory = bench.directory("hdd") if bench.quick else bench.testbed("hdd")
    tier = bench.directory("ssd") if bench.quick else bench.testbed("ssd")
    draw = random.Random(9)
    for number in range(PROGRAMS):
        bench.native(bench.worker("read_list", directory / f"data{number}", "--make", size))
        lines = (f"{draw.randrange(size // MIB) * MIB} {MIB}\n" for _ in range(reads))
        (bench.scratch / f"around-{number}").write_text("".join(lines))
    rates = bench.in_turns(lambda: _rate(bench, directory, tier, size, "on"),
                           lambda: _rate(bench, directory, tier, size, "off"))
    ratio = statistics.median(on["rate"] / off["rate"] for on, off in rates)
    around = statistics.median(on["around"] / on["bytes"] for on, _ in rates)
    detail = ", ".join(f"{switch} {statistics.median(pair[at]['rate'] for pair in rates) / MIB:.0f} MiB/s"
                       for at, switch in enumerate(("on", "off")))
    bench.at_least("reads of a saturated tier, balanced against not", ratio, 1.1,
                   detail=f"{detail}; {100 * around:.0f} % from the store")


def _rate(bench, directory, tier, size: int, switch: str) -> dict:
    settings = bench.scratch / "around.yaml"
    settings.write_text(f"replacement:\n  balance_reads: {switch}\nprefetch:\n  budget: 0\n")
    files = [directory / f"data{number}" for number in range(PROGRAMS)]
    with bench.node("--ram", MIB, "--tier", f"{tier}:{size * (PROGRAMS + 1)}", "--config", settings) as node:
        bench.output([bench.cairn, "stage-in", "--node", node.name, "--tier", "tier1", *files])
        bench.drop_caches()
        before = node.status()["counters"]
        results = node.run_together(
            [bench.worker("read_list", file, "--list", bench.scratch / f"around-{number}", "--compute-us", 0)
             for number, file in enumerate(files)], directory)
        after = node.status()["counters"]
    read = after["read_bytes"] - before["read_bytes"]
    seconds = max(result["wall_ns"] for result in results) / 1e9
    return {"rate": read / seconds, "bytes": read, "around": after["read_around_bytes"] - before["read_around_bytes"]}
