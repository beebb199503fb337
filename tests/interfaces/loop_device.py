#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A buffered file under a loop device: what either writes, the other reads, also when who attached it has gone.

    loop_device.py          needs root and loop devices, else it is skipped
    loop_device.py SCENE    what runs natively and under Cairn, in an empty directory
"""

import difflib
import fcntl
import os
import struct
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import under_cairn  # noqa: E402

LOOP_SET_FD, LOOP_CLR_FD, LOOP_CONFIGURE, LOOP_CTL_GET_FREE = 0x4C00, 0x4C01, 0x4C0A, 0x4C82
BLKFLSBUF = 0x1261
IMAGE_BYTES = 1 << 20
SCENE_SECONDS = 60
ATTEMPTS = 20  # another program may take the free device first


def attached(image):
    """The names of the loop devices that have the file of this name."""
    found = []
    for device in Path("/sys/block").glob("loop*/loop/backing_file"):
        try:
            if device.read_text().strip() == str(image):
                found.append("/dev/" + device.parent.parent.name)
        except OSError:
            pass  # gone since it was listed
    return found


def detach(image):
    for device in attached(image):
        with open(device, "rb") as opened:
            fcntl.ioctl(opened, LOOP_CLR_FD)


def attach(request, image):
    """Attaches the image from a process that ends at once. Returns the device."""
    code = f"""
import fcntl, os, struct
image = os.open({str(image)!r}, os.O_RDWR)
for attempt in range({ATTEMPTS}):
    control = os.open("/dev/loop-control", os.O_RDWR)
    device = "/dev/loop%d" % fcntl.ioctl(control, {LOOP_CTL_GET_FREE})
    loop = os.open(device, os.O_RDWR)
    try:
        if {request} == {LOOP_SET_FD}:
            fcntl.ioctl(loop, {request}, image)
        else:
            fcntl.ioctl(loop, {request}, struct.pack("II", image, 0).ljust(304, b"\\0"))
    except BlockingIOError:
        continue
    except OSError as error:
        if error.errno != 16:
            raise
        continue
    print(device)
    break
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=SCENE_SECONDS)
    if done.returncode != 0:
        print("not attached:", done.stderr.strip().splitlines()[-1])
        sys.exit(0)
    return done.stdout.strip()


def read_device(device, offset, length):
    """What the device has, not what somebody has read of it before."""
    fd = os.open(device, os.O_RDWR)
    try:
        os.fsync(fd)
        fcntl.ioctl(fd, BLKFLSBUF)
        return os.pread(fd, length, offset)
    finally:
        os.close(fd)


def write_device(device, offset, content):
    fd = os.open(device, os.O_RDWR)
    try:
        os.pwrite(fd, content, offset)
        os.fsync(fd)
    finally:
        os.close(fd)


def scene(request):
    image = Path.cwd() / "image"
    fd = os.open(image, os.O_RDWR | os.O_CREAT, 0o644)
    os.pwrite(fd, b"a" * IMAGE_BYTES, 0)
    device = attach(request, image)
    try:
        print("not stored before:", read_device(device, 4096, 8))
        os.pread(fd, IMAGE_BYTES, 0)
        write_device(device, 8192, b"by the device" + bytes(4083))
        print("written to the device:", os.pread(fd, 13, 8192))
        os.close(fd)
        fd = os.open(image, os.O_RDWR)
        os.pread(fd, IMAGE_BYTES, 0)
        write_device(device, 12288, b"once more" + bytes(4087))
        print("after another open:", os.pread(fd, 9, 12288))
        os.pwrite(fd, b"by the file", 16384)
        print("written to the file:", read_device(device, 16384, 11))
    finally:
        detach(image)
    os.pwrite(fd, b"detached", 0)
    print("afterwards:", os.pread(fd, 10, 0), os.stat(image).st_size)
    os.close(fd)


def refused():
    """A device that does not take the file, and a request that nobody knows."""
    fd = os.open("image", os.O_RDWR | os.O_CREAT, 0o644)
    os.pwrite(fd, b"a" * 8192, 0)
    with open("/dev/null", "rb") as other:
        for request, argument in ((LOOP_SET_FD, fd), (LOOP_CONFIGURE, struct.pack("II", fd, 0).ljust(304, b"\0"))):
            try:
                fcntl.ioctl(other, request, argument)
            except OSError as error:
                print("refused:", error.errno)
    os.pwrite(fd, b"still", 4)
    print(os.pread(fd, 12, 0))


SCENES = {"set_fd": lambda: scene(LOOP_SET_FD), "configure": lambda: scene(LOOP_CONFIGURE), "refused": refused}


def lines_of(command, directory):
    outcome = under_cairn.execute(command, directory, SCENE_SECONDS)
    detach(directory / "image")
    return [f"{outcome}\n"] + (outcome.output + outcome.errors).splitlines(keepends=True)


def check(name):
    work = under_cairn.work_directory(f"interfaces-loop-{name}")
    native, managed = work / "native", work / "cairn"
    native.mkdir()
    managed.mkdir()
    command = [sys.executable, str(Path(__file__).resolve()), name]
    alone = lines_of(command, native)
    if alone[0] != "exit status 0\n":
        print(f"skipped {name}: natively {''.join(alone)}")
        return None
    buffered = lines_of(under_cairn.cairn_command(command, managed), managed)
    lines = list(difflib.unified_diff(alone, buffered, "native", "under Cairn"))
    lines += under_cairn.compare_trees(under_cairn.read_tree(native), under_cairn.read_tree(managed))
    print(f"FAILED {name}, kept {work}:\n{''.join(lines)}" if lines else f"passed {name}", flush=True)
    if not lines:
        under_cairn.remove(work)
    return not lines


def main():
    if len(sys.argv) > 1:
        SCENES[sys.argv[1]]()
        return 0
    if os.geteuid() != 0 or not os.path.exists("/dev/loop-control"):
        print("skipped: loop devices want root")
        return under_cairn.SKIPPED
    if not under_cairn.have_cairn():
        print(f"skipped: {under_cairn.CAIRN} is not built")
        return under_cairn.SKIPPED
    results = [check(name) for name in SCENES]
    if False in results:
        return 1
    return under_cairn.SKIPPED if None in results else 0


if __name__ == "__main__":
    sys.exit(main())
