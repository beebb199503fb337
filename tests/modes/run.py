#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Buffering modes and flush triggers, rules and staging: what is on the backing store at each instant, seen from
outside the run after every call.

    run.py [triggers | rules | policies | files | scratch | shares]
"""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import under_cairn  # noqa: E402
from policy_scenes import (  # noqa: E402
    a_rules_tier_is_not_ranked, default_policy_fills_the_fastest_first, hot_files_rise,
    hot_files_rise_between_file_tiers, idle_time_is_for_measuring, locality_keeps_files_together,
    policies_by_path_and_run, policies_from_shared_objects, report_names_each_tier, round_robin_uses_all_tiers,
    small_new_files_start_in_memory)
from rule_scenes import (  # noqa: E402
    buffered_while_the_kernel_has_it, copy_within_what_is_buffered_under_one_name_only,
    cut_by_an_open_past_the_buffer, rules_by_path, rules_for_parts, rules_of_a_running_node, rules_of_one_run,
    rules_place_in_tiers, sendfile_to_what_is_not_buffered)
from scratch_scenes import (  # noqa: E402
    old_generations_end, scratch_by_pattern_goes_at_the_end, scratch_is_never_stored, scratch_of_a_killed_node_goes,
    scratch_of_a_node_is_shared, scratch_overflows_to_the_store)
from share_scenes import (  # noqa: E402
    counts_survive_kills, reservation_in_a_file_tier, reservation_of_files, reservation_of_files_makes_its_room,
    reservations_of_a_schema_end_with_its_run, reservations_of_files_that_cannot_be_met,
    reservations_that_cannot_be_met, reserved_data_stays_resident, reserved_room_is_made_before_the_run,
    weights_divide_the_tier)
from staging_scenes import (  # noqa: E402
    lists_of_many_names, moves_and_their_reasons, pins, room_is_made_before_the_next_burst, stage_in_and_out)
from trigger_scenes import (  # noqa: E402
    bypass, on_exit, on_exit_fsync, on_exit_without_room, per_file, per_operation, periodic, periodic_amount,
    persistent_sync)


PARTS = {
    "shares": [reserved_data_stays_resident, reserved_room_is_made_before_the_run, reservation_in_a_file_tier,
               reservations_that_cannot_be_met, reservation_of_files, reservation_of_files_makes_its_room,
               reservations_of_files_that_cannot_be_met, reservations_of_a_schema_end_with_its_run,
               counts_survive_kills, weights_divide_the_tier],
    "scratch": [scratch_is_never_stored, scratch_overflows_to_the_store, scratch_by_pattern_goes_at_the_end,
                old_generations_end, scratch_of_a_node_is_shared, scratch_of_a_killed_node_goes],
    "triggers": [persistent_sync, periodic, periodic_amount, per_operation, per_file, on_exit, on_exit_fsync,
                 on_exit_without_room, bypass],
    "rules": [rules_by_path, rules_of_a_running_node, rules_of_one_run, rules_place_in_tiers, rules_for_parts,
              buffered_while_the_kernel_has_it, cut_by_an_open_past_the_buffer,
              copy_within_what_is_buffered_under_one_name_only, sendfile_to_what_is_not_buffered],
    "files": [stage_in_and_out, lists_of_many_names, moves_and_their_reasons, room_is_made_before_the_next_burst, pins],
    "policies": [default_policy_fills_the_fastest_first, round_robin_uses_all_tiers,
                 report_names_each_tier, locality_keeps_files_together,
                 small_new_files_start_in_memory, hot_files_rise, hot_files_rise_between_file_tiers,
                 a_rules_tier_is_not_ranked,
                 policies_by_path_and_run, policies_from_shared_objects, idle_time_is_for_measuring],
}


def main():
    if not under_cairn.have_cairn():
        print(f"skipped: {under_cairn.CAIRN} is not built")
        return under_cairn.SKIPPED
    failed = 0
    for part in sys.argv[1:] or PARTS:
        for scene in PARTS[part]:
            try:
                scene()
                print(f"passed {scene.__name__}", flush=True)
            except AssertionError as problem:
                failed += 1
                print(f"FAILED {scene.__name__}: {problem}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
