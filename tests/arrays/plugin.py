#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The connector as a file: what it exports, what it needs, and that it stays where HDF5 would unload it."""

import re
import subprocess
import sys

import stage
from stage import PLUGIN

EXPORTS = {"H5PLget_plugin_info", "H5PLget_plugin_type"}


def symbols(*options):
    lines = subprocess.run(["nm", "-D", *options, PLUGIN], check=True, capture_output=True, text=True).stdout
    return {line.split()[-1].split("@")[0] for line in lines.splitlines()}


def problems():
    found = []
    foreign = sorted(name for name in symbols("--undefined-only") if re.match(r"H5|_Z", name))
    if foreign:
        found.append(f"leaves these to whatever library comes first in the process: {foreign}")
    if symbols("--defined-only") != EXPORTS:
        found.append(f"exports {sorted(symbols('--defined-only'))}")
    dynamic = stage.readelf("-dW")
    needed = set(re.findall(r"\(NEEDED\).*\[(.+?)\]", dynamic))
    if not needed <= {"libc.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}:
        found.append(f"needs {sorted(needed)}")
    if "NODELETE" not in dynamic:
        found.append("may be unloaded, though HDF5 calls it when the process ends")
    others = sorted(path.name for path in stage.FOLDER.iterdir() if path != PLUGIN)
    if others:
        found.append(f"stands beside {others}, which HDF5 would try to load")
    return found


if __name__ == "__main__":
    stage.need_plugin()
    PROBLEMS = problems()
    print("\n".join(PROBLEMS) or "the connector exports two names, needs libc, and stays")
    sys.exit(1 if PROBLEMS else 0)
