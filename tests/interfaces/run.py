#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the scenes of a worker natively and under Cairn and compares what they print and what they leave behind.

    run.py WORKER [SCENE...]
"""

import difflib
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import under_cairn  # noqa: E402

SCENE_SECONDS = 20


def told(outcome):
    """What a scene's process came to, as lines."""
    return [f"{outcome}\n"] + outcome.output.splitlines(keepends=True)


def differences(worker, scene, work):
    """The differences under Cairn, as text; empty when there are none."""
    native, managed = work / "native", work / "cairn"
    native.mkdir()
    managed.mkdir()
    alone = under_cairn.execute([worker, scene], native, SCENE_SECONDS)
    if alone.timed_out or alone.status != 0:
        return f"natively: {alone}: {alone.output[-400:]}{alone.errors[-400:]}"
    command = under_cairn.cairn_command([worker, scene], managed)
    buffered = under_cairn.execute(command, managed, SCENE_SECONDS)
    lines = list(difflib.unified_diff(told(alone), told(buffered), "native", "under Cairn", n=2))
    trees = under_cairn.compare_trees(under_cairn.read_tree(native), under_cairn.read_tree(managed))
    lines += [line + "\n" for line in trees]
    if lines and buffered.errors:
        lines.append(buffered.errors[-400:])
    return "".join(lines)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if not under_cairn.have_cairn():
        print(f"skipped: {under_cairn.CAIRN} is not built")
        return under_cairn.SKIPPED
    worker = Path(sys.argv[1]).resolve()
    listed = subprocess.run([worker], capture_output=True, text=True, timeout=SCENE_SECONDS, check=True)
    failed = 0
    for scene in sys.argv[2:] or sorted(listed.stdout.split()):
        work = under_cairn.work_directory(f"interfaces-{scene}")
        problem = differences(worker, scene, work)
        print(f"FAILED {scene}, kept {work}:\n{problem}" if problem else f"passed {scene}", flush=True)
        failed += bool(problem)
        if not problem:
            under_cairn.remove(work)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
