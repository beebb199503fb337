# SPDX-License-Identifier: Apache-2.0
"""What the preload adds to a call on a descriptor that is not managed, against the native call."""


def run(bench):
    managed = bench.directory("managed")
    command = bench.worker("call_cost", bench.memory / "calls", "--slices", 2 if bench.quick else 15,
                           "--slice-ms", 2 if bench.quick else 10)
    with bench.node("--ram", "128M") as node:
        # The filter that refuses io_uring is the kernel's and costs every system call of the run the same,
        # managed or not: it is told apart from what the library adds.
        for words, flags in (("library", ["--allow-io-uring"]), ("library and io_uring filter", [])):
            pairs = []
            for _ in range(2):
                pairs += bench.in_turns(lambda: node.run(command, managed, flags), lambda: bench.native(command))
            for call in pairs[0][0]:
                # The floor of each side: two native runs differ by up to 7 ns in their medians on a busy machine.
                ours, native = (min(result[call] for result in side) for side in zip(*pairs))
                bench.at_most(f"{call}, {words}: added", ours - native, 5, "ns", detail=f"native {native:.0f} ns")
