#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that use HDF5 through stock wheels, with the connector chosen, or only to be found.

A scene is a function of array_programs.py, which runs in build/venv. It fails unless the connector is in use where it
was chosen: each program asks HDF5 which connector its files have.
"""

import sys
import time

import stage
import under_cairn

# Scene, and the variables that its program is started with.
CHOSEN = {"connector": True}
ONLY_FOUND = {"connector": False, "plugin_path": True}
ABSENT = {"connector": False, "plugin_path": False}
SCENES = [
    ("three_libraries_read_each_other", CHOSEN),
    ("three_libraries_read_each_other", ABSENT),
    ("forked_processes_read", CHOSEN),
    ("a_missing_file_is_a_missing_file", CHOSEN),
    ("a_missing_file_is_a_missing_file", ONLY_FOUND),
    ("what_is_no_hdf5_file_says_so", CHOSEN),
    ("what_is_no_hdf5_file_says_so", ONLY_FOUND),
    ("filters_of_netcdf4_work", CHOSEN),
    ("filters_of_netcdf4_work", ABSENT),
    ("links_mounts_and_copies_work", CHOSEN),
    ("links_mounts_and_copies_work", ABSENT),
    ("random_selections_are_equal", CHOSEN),
    ("xarray_reads_with_both_engines", CHOSEN),
    ("a_fifth_library_is_refused", CHOSEN),
    ("a_connector_that_is_only_found_is_not_used", ONLY_FOUND),
    ("a_connector_may_be_told_what_is_below", CHOSEN),
    ("threads_read", CHOSEN),
]
SECONDS = 120


def play(python, name, choice):
    directory = under_cairn.work_directory("arrays")
    environment = stage.environment(**choice, CAIRN_EXPECT="cairn" if choice["connector"] else "native")
    began = time.monotonic()
    outcome = under_cairn.execute([python, stage.HERE / "array_programs.py", name], directory, SECONDS, environment)
    is_passed = outcome.status == 0
    how = "chosen" if choice["connector"] else "only found" if choice["plugin_path"] else "absent"
    print(f"{name}, connector {how}: {'ok' if is_passed else f'FAILED: {outcome}'} "
          f"({time.monotonic() - began:.1f} s)", flush=True)
    if is_passed:
        under_cairn.remove(directory)
    else:
        print(outcome.output[-2000:] + outcome.errors[-4000:], flush=True)
    return is_passed


def main():
    stage.need_plugin()
    python = stage.interpreter()
    wanted = [scene for scene in SCENES if len(sys.argv) < 2 or scene[0] in sys.argv[1:]]
    return 0 if all([play(python, name, choice) for name, choice in wanted]) else 1


if __name__ == "__main__":
    sys.exit(main())
