# SPDX-License-Identifier: Apache-2.0
"""What the preload adds to a call on a descriptor that is not managed, against the native call."""
import statistics


def run(bench):
    managed = bench.directory("managed")
    command = bench.worker("call_cost", bench.memory / "calls", "--slices", 2 if bench.quick else 15,
                           "--slice-ms", 2 if bench.quick else 10)
    with bench.node("--ram", "128M") as node:
        pairs = bench.in_turns(lambda: node.run(command, managed), lambda: bench.native(command))
    for call in pairs[0][0]:
        added = statistics.median(ours[call] - native[call] for ours, native in pairs)
        native = statistics.median(native[call] for _ours, native in pairs)
        bench.at_most(f"{call}: added time", added, 5, "ns", detail=f"native {native:.0f} ns")
