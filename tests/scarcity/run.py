#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Scarce resources: tables of a handful of records, few descriptors, no memory. Nothing is lost, nobody reads stale
bytes, and nothing fails that does not fail natively.

    run.py [PART... | PART.SCENE...]       each file PART_scenes.py beside this one has a list SCENES
"""

import importlib
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import under_cairn  # noqa: E402


def parts():
    return sorted(path.name.removesuffix("_scenes.py") for path in HERE.glob("*_scenes.py"))


def scenes_of(word):
    part, _, name = word.partition(".")
    module = importlib.import_module(part + "_scenes")
    chosen = [scene for scene in module.SCENES if name in ("", scene.__name__)]
    if not chosen:
        raise SystemExit(f"there is no scene {name} of {part}")
    return chosen


def main():
    if not under_cairn.have_cairn():
        print(f"skipped: {under_cairn.CAIRN} is not built")
        return under_cairn.SKIPPED
    failed = 0
    for word in sys.argv[1:] or parts():
        for scene in scenes_of(word):
            try:
                scene()
                print(f"passed {scene.__name__}", flush=True)
            except AssertionError as problem:
                failed += 1
                print(f"FAILED {scene.__name__}: {problem}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
