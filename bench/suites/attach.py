# SPDX-License-Identifier: Apache-2.0
"""What starting a program under a running node costs, against starting it plainly."""
import statistics


def run(bench):
    managed = bench.directory("managed")
    (managed / "file").write_bytes(b"x")
    times = 3 if bench.quick else 40

    def timed(command, environment=None):
        result = bench.native(bench.worker("spawn_timer", times, *command), environment=environment)
        return result["ns"] / 1e6

    probe = bench.worker("open_read", managed / "file")
    with bench.node("--ram", "256M") as node:
        whole = bench.in_turns(lambda: timed(node.command(["/bin/true"], managed)),
                               lambda: timed(["/bin/true"]))
        # spawn_timer itself must not attach, so the environment is set by env(1) on both sides.
        added = node.preload_environment(managed)
        names = ("LD_PRELOAD", "CAIRN_SOCKET", "CAIRN_BUFFER", "CAIRN_RUN")
        preload = ["/usr/bin/env", *(f"{name}={added[name]}" for name in names)]
        plain = ["/usr/bin/env", *(f"{name}_=" for name in names)]
        attach = bench.in_turns(lambda: timed([*preload, *probe]), lambda: timed([*plain, *probe]))
    _record(bench, "cairn run --node X -- /bin/true: added", whole, 1)
    _record(bench, "preload's own attach (open, read, exit): added", attach, 0.3)


def _record(bench, name: str, pairs, target: float) -> None:
    added = statistics.median(ours - native for ours, native in pairs)
    native = statistics.median(native for _ours, native in pairs)
    bench.at_most(name, added, target, "ms", detail=f"native {native:.2f} ms")
