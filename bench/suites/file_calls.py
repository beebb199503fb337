# SPDX-License-Identifier: Apache-2.0
"""Calls on small files, and a shell loop over one, against the same on ext4."""
import statistics

# What a call may cost, in times of the native one.
TARGETS = {"create": 1.25, "unlink": 2.5, "open": 2, "stat": 1.15}
NAMES = {"create": "create, write 4 KiB, close", "unlink": "unlink", "open": "open, close", "stat": "stat"}


def run(bench):
    files = 200 if bench.quick else 4000
    loops = 10 if bench.quick else 300
    managed, plain = bench.directory("managed"), bench.directory("plain")
    with bench.node("--ram", "512M") as node:
        pairs = []
        for _ in range(1 if bench.quick else 2):
            pairs += bench.in_turns(lambda: node.run(bench.worker("file_calls", managed, files), managed),
                                    lambda: bench.native(bench.worker("file_calls", plain, files)))
        for call, target in TARGETS.items():
            times = [(ours[call] / 1e3, native[call] / 1e3) for ours, native in pairs]
            _record(bench, NAMES[call], times, target, "us")

        small = managed / "small"
        small.write_bytes(b"small\n")
        loop = ["/bin/sh", "-c", f"i=0; while [ $i -lt {loops} ]; do cat {small}; i=$((i+1)); done >/dev/null"]

        def timed(command):
            return bench.native(bench.worker("spawn_timer", 1, *command))["ns"] / 1e6

        pairs = bench.in_turns(lambda: timed(node.command(loop, managed)), lambda: timed(loop))
        _record(bench, f"a shell loop of {loops} cat", pairs, 1.4, "ms")


def _record(bench, name: str, pairs, target: float, unit: str) -> None:
    ratio = statistics.median(ours / native for ours, native in pairs)
    ours, native = (statistics.median(side) for side in zip(*pairs))
    bench.at_most(name, ratio, target, "x", detail=f"{ours:.4g} against {native:.4g} {unit}")
