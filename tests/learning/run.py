#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a node learns from the accesses of programs, and what it does with it, from outside.

    run.py [ahead | hints | races | plugins | replacement | heat | traces | plays]
"""

import subprocess
import sys
import time

import ahead_scenes
import heat_scenes
import hint_scenes
import play_scenes
import plugin_scenes
import race_scenes
import replacement_scenes
import trace_scenes
from stage import READ_LIST, under_cairn

PARTS = {"ahead": ahead_scenes.SCENES, "hints": hint_scenes.SCENES, "races": race_scenes.SCENES,
         "plugins": plugin_scenes.SCENES, "replacement": replacement_scenes.SCENES, "heat": heat_scenes.SCENES,
         "traces": trace_scenes.SCENES, "plays": play_scenes.SCENES}


def main():
    for needed in (under_cairn.CAIRN, READ_LIST):
        if not needed.exists():
            print(f"skipped: {needed} is not built")
            return under_cairn.SKIPPED
    failed = 0
    for part in sys.argv[1:] or PARTS:
        for scene in PARTS[part]:
            began = time.monotonic()
            try:
                scene()
                print(f"passed {scene.__name__} ({time.monotonic() - began:.1f} s)", flush=True)
            except (AssertionError, subprocess.SubprocessError) as problem:
                failed += 1
                print(f"FAILED {scene.__name__}: {problem}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
