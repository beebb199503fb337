# SPDX-License-Identifier: Apache-2.0
"""A machine with less memory: tiers, programs and the kernel's caches share what a control group may have.

Without it the kernel would keep on the side all that a tier of RAM has no room for, and nothing would be read from the
disk twice, with Cairn or without.
"""
import contextlib
import os
import pathlib
import time

from .errors import BenchError, Skip

V1 = pathlib.Path("/sys/fs/cgroup/memory")
V2 = pathlib.Path("/sys/fs/cgroup")
EMPTY_SECONDS = 20


@contextlib.contextmanager
def limited(bytes_max: int):
    """This process, and all that it starts meanwhile, have so much memory, in which the files they read count."""
    own = _own_group()
    group = (own if _is_v1() else own.parent) / f"cairn-bench-{os.getpid()}"
    try:
        group.mkdir()
        limit = group / ("memory.limit_in_bytes" if _is_v1() else "memory.max")
        limit.write_text(str(bytes_max))
        if not _is_v1():
            # The testbed's throttles belong to groups: those of the own one go on to hold.
            for rule in _lines(own / "io.max"):
                (group / "io.max").write_text(rule)
    except OSError as error:
        _remove(group)
        raise Skip(f"no memory control group can be made here: {error}") from error
    _enter(group)
    try:
        yield
    except BenchError as error:
        if _has_killed(group):
            raise BenchError(f"{bytes_max >> 20} MiB of memory were too little, the kernel ended a process: "
                             f"{error}") from error
        raise
    finally:
        _enter(own)
        _remove(group)


def _is_v1() -> bool:
    return (V1 / "cgroup.procs").exists()


def _has_killed(group: pathlib.Path) -> bool:
    lines = _lines(group / ("memory.oom_control" if _is_v1() else "memory.events"))
    return any(line.startswith("oom_kill ") and line != "oom_kill 0" for line in lines)


def _own_group() -> pathlib.Path:
    for line in _lines("/proc/self/cgroup"):
        _, controllers, path = line.split(":", 2)
        if _is_v1() and "memory" in controllers.split(","):
            return V1 / path.lstrip("/")
        if not _is_v1() and not controllers and path != "/":
            return V2 / path.lstrip("/")
    raise Skip("this process is in no memory control group")


def _lines(path) -> list:
    try:
        return pathlib.Path(path).read_text().splitlines()
    except OSError:
        return []


def _enter(group: pathlib.Path) -> None:
    (group / "cgroup.procs").write_text(str(os.getpid()))


def _remove(group: pathlib.Path) -> None:
    """Once the last process that was started in it has ended."""
    deadline = time.monotonic() + EMPTY_SECONDS
    while group.exists():
        try:
            group.rmdir()
        except OSError as error:
            if time.monotonic() > deadline:
                raise BenchError(f"{group} could not be removed: {error}") from error
            time.sleep(0.05)
