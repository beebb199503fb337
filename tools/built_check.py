#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds sources of src/ and cli/ that no target compiles: a test that never runs looks like one that passes.

Rooms that the build has left out, because the machine lacks what they need, stand in its unbuilt_rooms.txt.

Usage: built_check.py BUILD_FOLDER
"""

import json
import os
import re
import sys

import sources


def unbuilt(paths, compiled, left_out=()):
    """Those of the paths that must be compiled and are not. `left_out` has the folders that need not be."""
    return [path for path in paths
            if path.startswith(("src/", "cli/")) and path.endswith(".cc") and path not in compiled
            and not path.startswith(tuple(left_out))]


def sources_in(path, text):
    """A file that CMake has written to compile several sources together stands for those, others for themselves."""
    return re.findall(r'^#include "(.*)"$', text, re.MULTILINE) if "/Unity/unity_" in path else [path]


def compiled_sources(build):
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        commands = json.load(file)
    compiled = set()
    for path in {entry["file"] for entry in commands}:
        with open(path, encoding="utf-8") as file:
            compiled.update(os.path.relpath(name, sources.ROOT) for name in sources_in(path, file.read()))
    return compiled


def left_out_rooms(build):
    path = os.path.join(build, "unbuilt_rooms.txt")
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return file.read().split()


def main(arguments):
    if len(arguments) != 1:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    missing = unbuilt(sources.all_files(), compiled_sources(arguments[0]), left_out_rooms(arguments[0]))
    for path in missing:
        print(f"{path}: no target compiles this file")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
