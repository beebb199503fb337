#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The plugins as files: what they export, what they need, and that they stay where HDF5 would unload them."""

import re
import subprocess
import sys

import stage

EXPORTS = {"H5PLget_plugin_info", "H5PLget_plugin_type"}


def symbols(plugin, *options):
    lines = subprocess.run(["nm", "-D", *options, plugin], check=True, capture_output=True, text=True).stdout
    return {line.split()[-1].split("@")[0] for line in lines.splitlines()}


def problems(plugin):
    found = []
    foreign = sorted(name for name in symbols(plugin, "--undefined-only") if re.match(r"H5|_Z", name))
    if foreign:
        found.append(f"leaves these to whatever library comes first in the process: {foreign}")
    if symbols(plugin, "--defined-only") != EXPORTS:
        found.append(f"exports {sorted(symbols(plugin, '--defined-only'))}")
    dynamic = stage.readelf(plugin, "-dW")
    needed = set(re.findall(r"\(NEEDED\).*\[(.+?)\]", dynamic))
    if not needed <= {"libc.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}:
        found.append(f"needs {sorted(needed)}")
    if "NODELETE" not in dynamic:
        found.append("may be unloaded, though HDF5 calls it when the process ends")
    return [f"{plugin.name} {problem}" for problem in found]


def strangers():
    others = sorted(path.name for path in stage.FOLDER.iterdir() if path not in (stage.PLUGIN, stage.DRIVER))
    return [f"HDF5 would try to load {others}"] if others else []


if __name__ == "__main__":
    stage.need_plugin()
    PROBLEMS = problems(stage.PLUGIN) + problems(stage.DRIVER) + strangers()
    print("\n".join(PROBLEMS) or "each plugin exports two names, needs libc, and stays")
    sys.exit(1 if PROBLEMS else 0)
