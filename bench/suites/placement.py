# SPDX-License-Identifier: Apache-2.0
"""What deciding where a block goes costs with six tiers, for each placement policy.

A client follows a plan that is made anew when room has shifted by more than a step; the cost is everything
from the pattern's load to the making of the plans, spread over the blocks placed.
"""
TARGET_NS = 200


def run(bench):
    result = bench.native(bench.worker("placement_cost", "--slices", 2 if bench.quick else 9,
                                       "--blocks", 20000 if bench.quick else 200000))
    for policy, cost in result.items():
        bench.at_most(f"{policy}: per block", cost["planned_ns"], TARGET_NS, "ns",
                      detail=f"a plan {cost['plan_ns'] / 1000:.1f} us, every {cost['blocks_per_plan']:.0f} "
                             f"blocks; asked for each {cost['unplanned_ns']:.0f} ns")
