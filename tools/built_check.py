#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds sources of src/ and cli/ that no target compiles: a test that never runs looks like one that passes.

Usage: built_check.py BUILD_FOLDER
"""

import json
import os
import sys

import sources


def unbuilt(paths, compiled):
    """Those of the paths that must be compiled and are not."""
    return [path for path in paths
            if path.startswith(("src/", "cli/")) and path.endswith(".cc") and path not in compiled]


def main(arguments):
    if len(arguments) != 1:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    with open(os.path.join(arguments[0], "compile_commands.json"), encoding="utf-8") as file:
        compiled = {os.path.relpath(entry["file"], sources.ROOT) for entry in json.load(file)}
    missing = unbuilt(sources.all_files(), compiled)
    for path in missing:
        print(f"{path}: no target compiles this file")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
