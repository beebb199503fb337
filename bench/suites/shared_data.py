# SPDX-License-Identifier: Apache-2.0
"""Four programs read one data set from a throttled disk, with RAM for half of it, against none fetched ahead.

The case of the Hermes paper's figure 12: what two programs read is to be fetched once, and none is to evict what
another one will read. In the irregular case no order can be foreseen: it must not be worse than without.
"""
import json
import random
import statistics
import subprocess

from harness.errors import BenchError
from harness.patterns import BLOCK, write_list

MIB = 1 << 20
PROGRAMS = 4
COMPUTE_US = 8000
BATCH = 16  # blocks are read together, then computed on


def run(bench):
    blocks = 64 if bench.quick else 1024
    directory = bench.directory("hdd") if bench.quick else bench.testbed("hdd")
    data = directory / "shared"
    bench.native(bench.worker("read_list", data, "--make", blocks * BLOCK))
    draw = random.Random(5)
    cases = {"in order": [list(range(blocks))] * PROGRAMS,
             "irregular": [draw.choices(range(blocks), k=blocks // 2) for _ in range(PROGRAMS)]}
    for name, orders in cases.items():
        for number, order in enumerate(orders):
            write_list(bench.scratch / f"shared-{number}", order)
        pairs = [(_run(bench, data, blocks, 25), _run(bench, data, blocks, 0))
                 for _ in range(1 if bench.quick else 2)]
        ratio = statistics.median(ours["io_s"] / none["io_s"] for ours, none in pairs)
        detail = ", ".join(f"{side}: {statistics.median(pair[at]['io_s'] for pair in pairs):.3g} s in I/O calls, "
                           f"{statistics.median(pair[at]['stored'] for pair in pairs) / MIB:.0f} MiB from the disk"
                           for at, side in enumerate(("ahead", "none")))
        if name == "in order":
            bench.at_least("in order: less time in I/O than none", 100 * (1 - ratio), 30, "%", detail=detail)
            fetched = statistics.median(ours["stored"] for ours, _ in pairs) / (blocks * BLOCK)
            bench.at_most("in order: data set read from the disk", fetched, 1.05, "x")
        else:
            bench.at_most("irregular: time in I/O against none", ratio, 1.02, "x", detail=detail)


def _run(bench, data, blocks: int, budget: int) -> dict:
    settings = bench.scratch / "shared.yaml"
    settings.write_text(f"prefetch:\n  budget: {budget}\n")
    bench.drop_caches()
    pause = 200 if bench.quick else COMPUTE_US
    with bench.node("--ram", blocks * BLOCK // 2, "--config", settings) as node:
        programs = [subprocess.Popen(
            node.command(bench.worker("read_list", data, "--list", bench.scratch / f"shared-{number}", "--compute-us",
                                      pause, "--batch", BATCH), data.parent),
            env=bench.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            for number in range(PROGRAMS)]
        results = []
        for program in programs:
            said, _ = program.communicate(timeout=600)
            if program.returncode != 0:
                raise BenchError("a reader failed")
            results.append(json.loads(said))
        moves = node.status()["moves"]
    return {"io_s": sum(result["io_ns"] for result in results) / 1e9,
            "stored": sum(move["bytes"] for move in moves if move["from"] == "backing store")}
