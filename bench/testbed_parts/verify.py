# SPDX-License-Identifier: Apache-2.0
"""Measures with fio what each device delivers and compares it with what it should."""
import json
import shutil

from . import devices, state
from .state import TestbedError, run

TOLERANCE = 0.10
RUN_SECONDS = 3
# The throttle grants credit for its first slice; a short ramp leaves it out of the measurement.
RAMP_SECONDS = 1


def verify(names) -> bool:
    """Prints a table and returns whether all devices deliver their rates within 10 %."""
    if not shutil.which("fio"):
        raise TestbedError("the rate check needs fio; install it (apt-get install fio) or pass "
                           "--no-verify")
    rows = [("device", "case", "delivered", "should be", "")]
    good = True
    for name in names:
        for disk in devices.disk_names(name):
            for row, fine in _verify_disk(disk):
                good = good and fine
                rows.append(row)
        if name == "pfs":
            rows.append(_measure_pfs())
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
    return good


def _verify_disk(disk: str):
    device = devices.kind(disk)
    file = state.mount_point(disk) / "rate-check"
    # The jobs run by time and go round in the file. The write job must reach its end: what it only
    # preallocated would be read as zeros without touching the device.
    size = min(256 << 20, devices.size_bytes(disk) // 4)
    try:
        yield _row(disk, "sequential write", device.write_rate / 1e6, "MB/s",
                   lambda: fio(file, "write", size)["write"]["bw_bytes"] / 1e6)
        yield _row(disk, "sequential read", device.read_rate / 1e6, "MB/s",
                   lambda: fio(file, "read", size)["read"]["bw_bytes"] / 1e6)
        if device.read_iops:
            yield _row(disk, "4 KiB random read", device.read_iops, "requests/s",
                       lambda: fio(file, "randread", size, "--bs=4k", "--iodepth=1")["read"]["iops"])
    finally:
        file.unlink(missing_ok=True)


def _row(disk: str, case: str, target: float, unit: str, measure):
    """Measures once more when the first value is off: a busy machine slows the fastest device down."""
    for _attempt in range(3):
        value = measure()
        fine = abs(value - target) <= TOLERANCE * target
        if fine:
            break
    return (disk, case, f"{value:.0f} {unit}", f"{target:.0f} {unit}", "ok" if fine else "WRONG"), fine


def _measure_pfs():
    """The file system's own rate has no exact target: its disks are checked, this one is shown."""
    file = state.mount_point("pfs") / "rate-check"
    try:
        job = run("fio", "--name=pfs", f"--filename={file}", "--rw=write", "--bs=1m", "--size=384m",
                  "--ioengine=psync", "--end_fsync=1", "--refill_buffers", "--thread",
                  "--output-format=json", bound=True)
        rate = _parse(job)["write"]["bw_bytes"] / 1e6
    finally:
        file.unlink(missing_ok=True)
    return ("pfs", "buffered write and fsync", f"{rate:.0f} MB/s", "95 to 200 MB/s (two disks)", "")


def fio(file, pattern: str, size: int, *more) -> dict:
    """One timed direct job at queue depth 8, enough to reach the throttle; the job's JSON results."""
    output = run("fio", f"--name={pattern}", f"--filename={file}", f"--rw={pattern}", f"--size={size}",
                 "--bs=1m", "--direct=1", "--ioengine=libaio", "--iodepth=8", "--time_based",
                 f"--runtime={RUN_SECONDS}", f"--ramp_time={RAMP_SECONDS}", "--thread",
                 "--output-format=json", *more, bound=True)
    return _parse(output)


def _parse(output: str) -> dict:
    # Notes may precede the document (fio prints some to the same stream).
    return json.loads(output[output.index("{"):])["jobs"][0]
