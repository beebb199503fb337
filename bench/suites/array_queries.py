# SPDX-License-Identifier: Apache-2.0
"""What it takes to find chunks of arrays among 100,000 that the tiers have: a whole one, a part of one, several.

ARCHIE goes through all cached chunks (section III-C).
"""
import time

from harness.errors import BenchError

CHUNK_BYTES = 4096


def run(bench):
    count = 2000 if bench.quick else 100_000
    directory = bench.directory("disk")
    file = directory / "array"
    file.write_bytes(b"x" * CHUNK_BYTES)
    time.sleep(0.2)  # a file that changed a moment ago is left alone
    words = bench.worker("region_queries", file, "--regions", count, "--bytes", CHUNK_BYTES, "--queries",
                         1000 if bench.quick else 20_000)
    with bench.node("--ram", 3 * count * CHUNK_BYTES + (64 << 20), name="bench-queries") as node:
        outcome = node.run(words, directory)
    if outcome["kept"] != count:
        raise BenchError(f"{outcome['kept']} of {count} chunks were kept")
    bench.at_most("a whole chunk", outcome["exact_ns"] / 1000, 10, "us")
    bench.at_most("a part of one", outcome["partial_ns"] / 1000, 13, "us")
    further = (outcome["four_ns"] - outcome["partial_ns"]) / 3
    bench.at_most("each further one", further / 1000, 3, "us")
