#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hints that a program has set hold under Cairn as they do natively, however it has set them.

    program_hints.py FAMILY
"""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import stage  # noqa: E402
import under_cairn  # noqa: E402

# Where the ranks access their pieces themselves: what ROMIO has for romio_cb_write, romio_cb_read, romio_ds_write and
# romio_ds_read then.
DIRECT = {"open, pieces", "pieces", "set when direct, pieces"}


def shown(line, work, folder, variables):
    (work / folder).mkdir()
    ran = under_cairn.execute(line, work / folder, stage.RUN_SECONDS, variables)
    assert ran.status == 0, f"{ran}: {ran.output[-400:]}{ran.errors[-600:]}"
    return dict(text.split(": ", 1) for text in ran.output.splitlines() if ": " in text)


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in stage.FAMILIES:
        sys.exit(__doc__)
    family = sys.argv[1]
    stage.need(family)
    program = stage.build(family, HERE / "program_hints.cc")
    work = under_cairn.work_directory(f"mpi-hints-{family}")
    line = stage.command(family, 2, program)
    native = shown(line, work, "native", stage.environment(family))
    ours = shown(under_cairn.cairn_command(line, work / "cairn"), work, "cairn", stage.environment(family))
    print(native, ours, sep="\n")
    assert native.keys() == ours.keys() > DIRECT, (native, ours)
    for name, values in ours.items():
        # Open MPI tells what was set at open, and nothing else.
        is_changed = name in DIRECT and family == "mpich"
        assert values == ("disable disable disable disable" if is_changed else native[name]), (name, values, native)
    # What the user says in ROMIO's own file.
    file = work / "hints"
    file.write_text("romio_ds_write disable\n")
    variables = stage.environment(family, ROMIO_HINTS=str(file))
    native = shown(line, work, "native-file", variables)
    ours = shown(under_cairn.cairn_command(line, work / "cairn-file"), work, "cairn-file", variables)
    assert native == ours, (native, ours)
    under_cairn.remove(work)
    return 0


if __name__ == "__main__":
    sys.exit(main())
