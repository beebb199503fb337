# SPDX-License-Identifier: Apache-2.0
"""fwrite and fread of 100-byte records, against native stdio on ext4."""
import os


def run(bench):
    records = bench.size("4000000", "20000")
    managed, plain = bench.directory("managed"), bench.directory("native")

    def worker(directory, mode):
        return bench.worker("stdio_records", directory / "records", "--mode", mode, "--records", records)

    def ours():
        written = node.run(worker(managed, "write"), managed)
        node.drain()
        return written, node.run(worker(managed, "read"), managed)

    def theirs():
        written = bench.native(worker(plain, "write"))
        os.sync()
        return written, bench.native(worker(plain, "read"))

    with bench.node("--ram", bench.size("2G", "128M")) as node:
        pairs = bench.in_turns(ours, theirs)
    bench.speed_up("fread, 100-byte records", pairs, lambda results: results[1]["fread_ns"], 1.5)
    # Cairn stores in the background what the kernel leaves in its cache for half a minute.
    bench.speed_up("fread, while it is being stored", pairs, lambda results: results[0]["fread_ns"], 1.5)
    bench.speed_up("fwrite, 100-byte records", pairs, lambda results: results[0]["fwrite_ns"], 1.5)
