# SPDX-License-Identifier: Apache-2.0
"""What the preload adds to a call on a descriptor that is not managed, against the native call."""


def run(bench):
    managed = bench.directory("managed")
    command = bench.worker("call_cost", bench.memory / "calls", "--slices", 2 if bench.quick else 15,
                           "--slice-ms", 2 if bench.quick else 10)
    with bench.node("--ram", "128M") as node:
        pairs = []
        for _ in range(2):
            pairs += bench.in_turns(lambda: node.run(command, managed), lambda: bench.native(command))
    for call in pairs[0][0]:
        # The floor of each side: two native runs differ by up to 7 ns in their medians on a busy machine.
        ours, native = (min(result[call] for result in side) for side in zip(*pairs))
        bench.at_most(f"{call}: added time", ours - native, 5, "ns", detail=f"native {native:.0f} ns")
