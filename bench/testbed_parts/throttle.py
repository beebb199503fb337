# SPDX-License-Identifier: Apache-2.0
"""Block-layer throttles and dirty-page limits of one device, by its "major:minor" name.

cgroup v1: rules in the root blkio group, which hold for processes of the root group only (a process in
a child group bypasses them). cgroup v2: the root has no io.max, so each top-level group gets the rule.
Both kinds outlive the loop device, and then throttle the next device with its number: clear them first.
"""
import pathlib

from .state import TestbedError

V1 = pathlib.Path("/sys/fs/cgroup/blkio")
V2 = pathlib.Path("/sys/fs/cgroup")
V1_KINDS = ("read_bps", "write_bps", "read_iops", "write_iops")
V2_KINDS = ("rbps", "wbps", "riops", "wiops")
LOOP_MAJOR = "7:"


def is_v1() -> bool:
    return (V1 / "blkio.throttle.read_bps_device").exists()


def check_available() -> None:
    """Raises when throttles would not hold for this process."""
    if is_v1():
        groups = dict(line.split(":", 2)[1:] for line in open("/proc/self/cgroup").read().split())
        if groups.get("blkio", "/") != "/":
            raise TestbedError(f"this shell is in the blkio group {groups['blkio']}, which bypasses the "
                               f"throttle of the root group; do 'echo $$ > {V1}/cgroup.procs' first")
    elif "io" not in _read(V2 / "cgroup.controllers").split():
        raise TestbedError("no throttle here: neither cgroup v1 blkio nor the cgroup v2 io controller "
                           "is mounted under /sys/fs/cgroup")


def set_rates(device: str, rates) -> None:
    """rates: (read bytes/s, write bytes/s, read requests/s, write requests/s); 0 is no limit."""
    if is_v1():
        for kind, rate in zip(V1_KINDS, rates):
            (V1 / f"blkio.throttle.{kind}_device").write_text(f"{device} {rate}")
        return
    rule = " ".join(f"{kind}={rate or 'max'}" for kind, rate in zip(V2_KINDS, rates))
    if "io" not in _read(V2 / "cgroup.subtree_control").split():
        (V2 / "cgroup.subtree_control").write_text("+io")
    for group in sorted(V2.glob("*/io.max")):
        group.write_text(f"{device} {rule}")


def clear_rates(device: str) -> None:
    if is_v1():
        for kind in V1_KINDS:
            _write(V1 / f"blkio.throttle.{kind}_device", f"{device} 0")
        return
    for group in V2.glob("*/io.max"):
        _write(group, f"{device} rbps=max wbps=max riops=max wiops=max")


def set_dirty_limit(device: str, limit_bytes: int) -> str:
    """Limits the dirty page cache of the device; returns a warning when the kernel cannot, else "".

    Without the strict limit writeback begins only at a tenth of the memory, and a "95 MB/s" disk
    takes 800 MB in 0.15 s: no baseline on it means anything.
    """
    directory = pathlib.Path("/sys/class/bdi") / device
    try:
        (directory / "strict_limit").write_text("1")
        (directory / "max_bytes").write_text(str(limit_bytes))
    except OSError:
        _write(directory / "max_ratio", "1")
        return (f"this kernel has no strict dirty limit ({directory}/strict_limit, Linux 6.2): writes "
                "that are not synced run at memory speed")
    return ""


def clear_dirty_limit(device: str) -> None:
    directory = pathlib.Path("/sys/class/bdi") / device
    _write(directory / "strict_limit", "0")
    _write(directory / "max_ratio", "100")


def dirty_limit(device: str) -> str:
    directory = pathlib.Path("/sys/class/bdi") / device
    if _read(directory / "strict_limit").strip() != "1":
        return "none"
    return f"{int(_read(directory / 'max_bytes').strip() or 0) >> 20} MiB"


def throttled_loops() -> list:
    """The loop devices ("7:N") that carry a rule, in use or not."""
    files = ([V1 / f"blkio.throttle.{kind}_device" for kind in V1_KINDS] if is_v1()
             else list(V2.glob("*/io.max")))
    found = set()
    for file in files:
        found.update(line.split()[0] for line in _read(file).splitlines()
                     if line.startswith(LOOP_MAJOR))
    return sorted(found)


def _read(path) -> str:
    try:
        return pathlib.Path(path).read_text()
    except OSError:
        return ""


def _write(path, text: str) -> None:
    """A write that may fail: clearing goes on with the next rule whatever happens to this one."""
    try:
        pathlib.Path(path).write_text(text)
    except OSError:
        pass
