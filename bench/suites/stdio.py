# SPDX-License-Identifier: Apache-2.0
"""fwrite and fread of 100-byte records, against native stdio on ext4."""
import os


def run(bench):
    records = bench.size("4000000", "20000")
    managed, plain = bench.directory("managed"), bench.directory("native")

    def worker(directory):
        return bench.worker("stdio_records", directory / "records", "--records", records)

    def ours():
        result = node.run(worker(managed), managed)
        node.drain()
        return result

    def theirs():
        result = bench.native(worker(plain))
        os.sync()
        return result

    with bench.node("--ram", bench.size("2G", "128M")) as node:
        pairs = bench.in_turns(ours, theirs)
    bench.speed_up("fread, 100-byte records", pairs, lambda result: result["fread_ns"], 1.5)
    bench.speed_up("fwrite, 100-byte records", pairs, lambda result: result["fwrite_ns"], 1.5)
