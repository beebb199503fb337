# SPDX-License-Identifier: Apache-2.0
"""The devices: what each one is, how it comes up, how it and its leftovers go."""
import contextlib
import dataclasses
import json
import os
import pathlib

from . import moosefs, state, throttle
from .state import TestbedError, run

NAMES = ("nvme", "ssd", "hdd", "pfs")


@dataclasses.dataclass(frozen=True)
class Device:
    """One throttled disk. Rates are bytes per second and requests per second; 0 is no limit."""
    read_rate: int
    write_rate: int
    read_iops: int
    write_iops: int
    size: str
    # About 0.15 s of the device's write rate: enough to stream, too little to hide a burst.
    dirty_limit_bytes: int
    # With an IOPS limit the default 128 KiB would cap sequential reads at half the rate.
    read_ahead_kib: int = 128


DISKS = {
    "nvme": Device(2_800_000_000, 1_900_000_000, 0, 0, "4G", 256 << 20),
    "ssd": Device(550_000_000, 500_000_000, 0, 0, "6G", 64 << 20),
    # 240 requests per second are 4.16 ms each.
    "hdd": Device(115_000_000, 95_000_000, 240, 240, "6G", 16 << 20, read_ahead_kib=4096),
}
PFS_DISKS = ("pfs-disk1", "pfs-disk2")


def kind(name: str) -> Device:
    return DISKS["hdd"] if name in PFS_DISKS else DISKS[name]


def disk_names(name: str) -> tuple:
    """The throttled disks that a device consists of."""
    return PFS_DISKS if name == "pfs" else (name,)


def is_up(name: str, known: dict) -> bool:
    return name in known and state.mounted(state.mount_point(name))


def up(name: str) -> None:
    throttle.check_available()
    if name != "pfs":
        _up_disk(name)
        return
    moosefs.install_if_missing()
    for disk in PFS_DISKS:
        _up_disk(disk)
    moosefs.up([state.mount_point(disk) for disk in PFS_DISKS])


def down(name: str) -> None:
    if name == "pfs":
        moosefs.down()
    for disk in disk_names(name):
        _down_disk(disk)


def size_bytes(name: str) -> int:
    family = "pfs" if name in PFS_DISKS else name
    default = "4G" if name in PFS_DISKS else DISKS[name].size
    variable = f"CAIRN_TESTBED_{family.upper()}_SIZE"
    text = os.environ.get(variable, default).strip().upper()
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    number, unit = (text[:-1], units[text[-1]]) if text[-1:] in units else (text, 1)
    if not number.isdigit() or int(number) * unit < (64 << 20):
        raise TestbedError(f"{variable}='{text}' is not a size of at least 64M (examples: 512M, 6G)")
    return int(number) * unit


def _image(name: str) -> pathlib.Path:
    """Where the image goes. The root disk is slower than nvme's rates, so nvme prefers memory."""
    directory = os.environ.get("CAIRN_TESTBED_IMAGE_DIR")
    if directory is None:
        directory = "/dev/shm" if name == "nvme" and _fits_in_memory(size_bytes(name)) else "/var/tmp"
    return pathlib.Path(directory) / f"{state.IMAGE_PREFIX}{name}.img"


def _fits_in_memory(size: int) -> bool:
    available = next(int(line.split()[1]) * 1024 for line in open("/proc/meminfo")
                     if line.startswith("MemAvailable"))
    try:
        free = os.statvfs("/dev/shm")
    except OSError:
        return False
    return size * 2 < available and size < free.f_bavail * free.f_frsize


def _up_disk(name: str) -> None:
    device = kind(name)
    image, size = _image(name), size_bytes(name)
    free = os.statvfs(image.parent)
    if size > free.f_bavail * free.f_frsize:
        raise TestbedError(f"{image.parent} has no room for the {size >> 20} MiB image of {name}; set "
                           "CAIRN_TESTBED_IMAGE_DIR or a smaller CAIRN_TESTBED_*_SIZE")
    state.record(name, image=str(image))
    run("fallocate", "-l", size, image)
    loop = run("losetup", "--show", "--find", "--direct-io=on", image).strip()
    block = pathlib.Path("/sys/block") / pathlib.Path(loop).name
    number = (block / "dev").read_text().strip()
    state.record(name, loop=loop, number=number)
    # A rule left by a crash under this number would slow mkfs down; and discard would punch holes into
    # the preallocated image.
    throttle.clear_rates(number)
    run("mkfs.ext4", "-q", "-F", "-m", "0", "-E",
        "lazy_itable_init=0,lazy_journal_init=0,nodiscard", loop)
    point = state.mount_point(name)
    point.mkdir(parents=True, exist_ok=True)
    run("mount", "-o", "noatime", loop, point)
    point.chmod(0o1777)
    (block / "queue" / "read_ahead_kb").write_text(str(device.read_ahead_kib))
    throttle.set_rates(number, (device.read_rate, device.write_rate, device.read_iops,
                                device.write_iops))
    warning = throttle.set_dirty_limit(number, device.dirty_limit_bytes)
    if warning:
        print(f"testbed: {name}: {warning}")


def _down_disk(name: str) -> None:
    entry = state.load().get(name, {})
    images = {entry["image"]} if "image" in entry else set()
    loops = {entry["loop"]: entry["number"]} if "loop" in entry else {}
    for loop, number, image in _attached():
        if pathlib.Path(image).name == f"{state.IMAGE_PREFIX}{name}.img":
            loops[loop] = number
            images.add(image)
        elif loops.get(loop):
            # The number belongs to somebody else by now: not ours to touch.
            del loops[loop]
    _clear_throttles(loops.values())
    state.unmount(state.mount_point(name))
    for loop in loops:
        run("losetup", "--detach", loop, check=False)
    images.update(str(path) for directory in _image_directories()
                  for path in directory.glob(f"{state.IMAGE_PREFIX}{name}.img"))
    for image in images:
        pathlib.Path(image).unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        state.mount_point(name).rmdir()
    state.forget(name)


def _clear_throttles(numbers) -> None:
    for number in numbers:
        throttle.clear_rates(number)
        throttle.clear_dirty_limit(number)


def _attached() -> list:
    """Every attached loop device as (device, "major:minor", image)."""
    text = run("losetup", "--list", "--json", "--output", "NAME,MAJ:MIN,BACK-FILE", check=False)
    rows = json.loads(text)["loopdevices"] if text.strip() else []
    return [(row["name"], row["maj:min"].strip(),
             (row["back-file"] or "").removesuffix(" (deleted)")) for row in rows]


def _image_directories() -> list:
    names = {"/dev/shm", "/var/tmp", os.environ.get("CAIRN_TESTBED_IMAGE_DIR", "/var/tmp")}
    return [pathlib.Path(name) for name in sorted(names)]


def remove_leftovers() -> None:
    """Removes what no state file tells about: throttles first, then mounts, loops and images."""
    attached = {number for _loop, number, _image in _attached()}
    _clear_throttles(number for number in throttle.throttled_loops() if number not in attached)
    ours = [(loop, number) for loop, number, image in _attached()
            if pathlib.Path(image).name.startswith(state.IMAGE_PREFIX)]
    _clear_throttles(number for _loop, number in ours)
    for point in state.mounts_below(state.MOUNTS):
        state.unmount(point)
    for loop, _number in ours:
        run("losetup", "--detach", loop, check=False)
    for directory in _image_directories():
        for image in directory.glob(f"{state.IMAGE_PREFIX}*.img"):
            image.unlink(missing_ok=True)
    for name in list(state.load()):
        state.forget(name)
    for point in state.MOUNTS.glob("*"):
        with contextlib.suppress(OSError):
            point.rmdir()


def leftovers() -> list:
    """Names the remains after `down`, so that the user can act."""
    items = [f"mount {point}" for point in state.mounts_below(state.MOUNTS)]
    for loop, _number, image in _attached():
        if pathlib.Path(image).name.startswith(state.IMAGE_PREFIX):
            items.append(f"loop device {loop} ({image})")
    for directory in _image_directories():
        items.extend(f"image {path}" for path in directory.glob(f"{state.IMAGE_PREFIX}*.img"))
    if moosefs.namespace_exists():
        items.append(f"network namespace {moosefs.NAMESPACE}")
    return items


def status_rows(name: str, known: dict) -> list:
    rows = []
    if name == "pfs":
        words = "up" if is_up(name, known) else "down"
        point = str(state.mount_point(name)) if words == "up" else "-"
        rows.append((name, words, point, "-", "-", "-", "-"))
        if words == "down" and not any(disk in known for disk in PFS_DISKS):
            return rows
    for disk in disk_names(name):
        entry, device = known.get(disk, {}), kind(disk)
        words = "up" if is_up(disk, known) else ("broken: run down" if entry else "down")
        limit = throttle.dirty_limit(entry["number"]) if "number" in entry else "-"
        rows.append((disk, words, str(state.mount_point(disk)) if words == "up" else "-",
                     entry.get("loop", "-"), f"{device.read_rate // 1_000_000} MB/s",
                     f"{device.write_rate // 1_000_000} MB/s", limit))
    return [row for row in rows if name != "pfs" or row[0] != name] if name != "pfs" else rows
