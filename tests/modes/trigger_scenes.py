# SPDX-License-Identifier: Apache-2.0
"""What each buffering mode and flush trigger has stored after each call."""

from puppet import PATTERN_BYTES, holds, pattern, soon
from scene import Check, stays_away


def persistent_sync():
    with Check("sync", "--mode", "persistent-sync") as check:
        file = check.open("a")
        for step in range(4):
            data = pattern(step)
            check.puppet.call("pwrite", file, data, step * PATTERN_BYTES)
            assert holds(check.path("a"), data, step * PATTERN_BYTES), f"write {step} returned before it was stored"
        small = pattern(9, 10)
        check.puppet.call("pwrite", file, small, 5)
        assert holds(check.path("a"), small, 5), "an overwrite returned before it was stored"
        assert check.puppet.call("pread", file, 10, 5) == small
        check.end()


def periodic():
    with Check("periodic", config="flush:\n  delay_ms: 300\n  trigger: periodic\n") as check:
        file = check.open("a")
        data = pattern(1)
        check.puppet.call("pwrite", file, data, 0)
        assert not holds(check.path("a"), data), "nothing was due yet"
        assert soon(lambda: holds(check.path("a"), data)), "not stored after the delay"
        check.end()


def periodic_amount():
    with Check("amount", config="flush:\n  delay_ms: 3600000\n  amount: 1M\n") as check:
        file = check.open("a")
        small = pattern(1)
        check.puppet.call("pwrite", file, small, 0)
        assert stays_away(check.path("a"), small), "less than the amount is not due"
        large = pattern(2, 1 << 20)
        check.puppet.call("pwrite", file, large, 0)
        assert soon(lambda: holds(check.path("a"), large)), "the amount is due whatever its age"
        check.end()


def per_operation():
    with Check("operation", "--trigger", "per-operation", config="flush:\n  delay_ms: 3600000\n") as check:
        file = check.open("a")
        for step in range(3):
            data = pattern(step)
            check.puppet.call("pwrite", file, data, step * PATTERN_BYTES)
            assert soon(lambda: holds(check.path("a"), data, step * PATTERN_BYTES), 2), f"write {step} not flushed"
        check.end()


def per_file():
    with Check("file", "--trigger", "per-file", config="flush:\n  delay_ms: 1\n") as check:
        file, other = check.open("a"), check.open("a")
        data = pattern(1)
        check.puppet.call("pwrite", file, data, 0)
        assert stays_away(check.path("a"), data), "flushed while it is open"
        check.puppet.call("close", other)
        assert stays_away(check.path("a"), data), "flushed although a writer has it open"
        check.puppet.call("close", file)
        assert soon(lambda: holds(check.path("a"), data)), "not flushed after the last close"
        check.end()


def on_exit():
    with Check("exit", "--trigger", "on-exit", config="flush:\n  delay_ms: 1\n") as check:
        file = check.open("a")
        data = pattern(1)
        check.puppet.call("pwrite", file, data, 0)
        check.puppet.call("close", file)
        assert stays_away(check.path("a"), data), "flushed before the end"
        assert check.path("a").stat().st_size == len(data), "its size is seen after the close all the same"
        check.end()
        assert holds(check.path("a"), data), "not stored when the run had ended"


def on_exit_fsync():
    with Check("exit-fsync", "--trigger", "on-exit") as check:
        file = check.open("a")
        data = pattern(1)
        check.puppet.call("pwrite", file, data, 0)
        check.puppet.call("fsync", file)
        assert holds(check.path("a"), data), "fsync() returned before it was stored"
        check.end()


def on_exit_without_room():
    with Check("exit-full", "--trigger", "on-exit", "--tier", "none") as check:
        file = check.open("a")
        piece = pattern(3, 1 << 20)
        for step in range(96):  # the RAM tier has 64 MiB
            check.puppet.call("pwrite", file, piece, step << 20)
        for step in range(0, 96, 7):
            assert check.puppet.call("pread", file, 1 << 20, step << 20) == piece, f"MiB {step} reads differently"
        check.end()
        for step in range(96):
            assert holds(check.path("a"), piece, step << 20), f"MiB {step} is not stored"


def bypass():
    with Check("bypass", "--mode", "bypass", config="flush:\n  delay_ms: 3600000\n") as check:
        file = check.open("a")
        data = pattern(1)
        check.puppet.call("pwrite", file, data, 0)
        assert holds(check.path("a"), data), "a bypassed file is written by the kernel at once"
        check.end()
