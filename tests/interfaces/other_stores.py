#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a worker's scenes on other file systems: two that can share extents, each in an image of its own, and one
that has no O_DIRECT.

    other_stores.py WORKER [SCENE...]    needs root, loop devices and mkfs.xfs or mkfs.btrfs, else it is skipped

The image is mounted in a mount namespace of its own, so that mount and loop device end with the test, however it ends.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import under_cairn  # noqa: E402

STORES = {"xfs": ["-q", "-m", "reflink=1"], "btrfs": ["-q"], "ramfs": []}
IMAGE_BYTES = 320 << 20  # neither of the two can do with much less; almost all of it is a hole
MOUNT_AND_RUN = 'mount -o loop "$1" "$2" && shift 2 && exec "$@"'
MOUNT_RAMFS_AND_RUN = 'mount -t ramfs "$1" "$2" && shift 2 && exec "$@"'
NOT_MOUNTED = 32  # mount(8)


def check(store, command):
    """True, False, or None where this machine cannot have such a file system."""
    maker = shutil.which("mkfs." + store, path=os.environ.get("PATH", "") + ":/sbin:/usr/sbin")
    if maker is None and store != "ramfs":
        print(f"skipped {store}: no mkfs.{store}")
        return None
    work = under_cairn.work_directory(f"interfaces-{store}")
    image, mounted = work / "image", work / "mounted"
    mounted.mkdir()
    if store != "ramfs":
        with open(image, "wb") as made:
            made.truncate(IMAGE_BYTES)
        subprocess.run([maker, *STORES[store], image], check=True, timeout=60, capture_output=True)
    mount = MOUNT_RAMFS_AND_RUN if store == "ramfs" else MOUNT_AND_RUN
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", mount, "sh", str(image), str(mounted), *command],
        env=dict(os.environ, CAIRN_TEST_DIRECTORY=str(mounted)), timeout=240)
    if done.returncode == NOT_MOUNTED:
        print(f"skipped {store}: it cannot be mounted here")
        under_cairn.remove(work)
        return None
    print(f"{'passed' if done.returncode == 0 else 'FAILED'} on {store}", flush=True)
    if done.returncode == 0:
        under_cairn.remove(work)
    return done.returncode == 0


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if os.geteuid() != 0 or not os.path.exists("/dev/loop-control"):
        print("skipped: mounting wants root and loop devices")
        return under_cairn.SKIPPED
    if not under_cairn.have_cairn():
        print(f"skipped: {under_cairn.CAIRN} is not built")
        return under_cairn.SKIPPED
    command = [sys.executable, str(HERE / "run.py"), *sys.argv[1:]]
    results = [check(store, command) for store in STORES]
    if False in results:
        return 1
    return 0 if True in results else under_cairn.SKIPPED


if __name__ == "__main__":
    sys.exit(main())
