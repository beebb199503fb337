#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ranks on one node access their pieces of a buffered file themselves, unless these are tiny or the program has wishes.

    direct_access.py FAMILY
"""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import stage  # noqa: E402
import under_cairn  # noqa: E402

RANKS = 3
DIRECT = {"records", "rows", "cut rows", "list", "another hint", "large counts", "large box"}
WAITS = {"tiny records", "records of one rank are tiny", "short rows", "short list", "hint at open", "hint at view",
         "hint after view", "large counts of tiny records", "large box of short rows"}


# A program that loads an MPI as Python modules do, for itself alone.
LOADER = "import ctypes, sys; sys.exit(ctypes.CDLL(sys.argv[1]).access_files(len(sys.argv) > 2))"


def seen(family, words, work, folder, **more):
    """The kinds of view by what their ranks did, as a run prints them."""
    (work / folder).mkdir()
    ran = under_cairn.execute(words, work / folder, stage.RUN_SECONDS, stage.environment(family, **more))
    assert ran.status == 0, f"{ran}: {ran.output[-400:]}{ran.errors[-600:]}"
    lines = dict(line.split(": ", 1) for line in ran.output.splitlines() if ": " in line)
    assert set(lines) == (set(more["VIEWS"].split(",")) if "VIEWS" in more else DIRECT | WAITS), ran.output
    return {name: word.split(",")[0] for name, word in lines.items()}, lines


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in stage.FAMILIES:
        sys.exit(__doc__)
    family = sys.argv[1]
    stage.need(family)
    program = stage.build(family, HERE / "direct_access.cc")
    work = under_cairn.work_directory(f"mpi-direct-{family}")
    line = stage.command(family, RANKS, program)
    native, _ = seen(family, line, work, "native")
    print("natively:", native)
    assert native["records"] == "waits", native
    ours, lines = seen(family, under_cairn.cairn_command(line, work / "cairn"), work, "cairn")
    print("under Cairn:", ours)
    assert {name for name, word in ours.items() if word == "direct"} >= DIRECT, ours
    assert {name: ours[name] for name in WAITS} == {name: native[name] for name in WAITS}, (ours, native)
    if family == "mpich":
        assert "romio_cb_write disable" in lines["records"] and "automatic" in lines["short list"], lines
    few = {"VIEWS": "records,short rows,hint at open"}
    ours, native = ({name: kinds[name] for name in few["VIEWS"].split(",")} for kinds in (ours, native))
    second, _ = seen(family, under_cairn.cairn_command([*line, "second-names"], work / "second"), work, "second", **few)
    assert second == ours, (second, ours)
    module = stage.build(family, HERE / "direct_access.cc", ["-shared", "-fPIC"], ".so")
    loads = stage.command(family, RANKS, sys.executable, "-c", LOADER, module)
    loaded, _ = seen(family, under_cairn.cairn_command(loads, work / "module"), work, "module", **few)
    assert loaded == ours, (loaded, ours)
    off, _ = seen(family, under_cairn.cairn_command(line, work / "off"), work, "off", CAIRN_MPI="off", **few)
    assert off == native, (off, native)
    file = work / "hints"
    file.write_text("romio_cb_write enable\n")
    told, _ = seen(family, under_cairn.cairn_command(line, work / "told"), work, "told", ROMIO_HINTS=str(file), **few)
    assert told == native, (told, native)
    # Where each rank has a run of its own, nobody knows whether all have one.
    own = stage.command(family, RANKS, *under_cairn.cairn_command([program], work / "own"))
    each, _ = seen(family, own, work, "own", **few)
    assert each == native, (each, native)
    under_cairn.remove(work)
    return 0


if __name__ == "__main__":
    sys.exit(main())
