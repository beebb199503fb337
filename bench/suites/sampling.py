# SPDX-License-Identifier: Apache-2.0
"""What it costs to be looked at: runs that are sampled for their report, and a node under `cairn top`.

One program writes and reads a file in RAM by small calls, which is where a cost shows most: each call takes a
microsecond, and nobody waits for a device. Its runs alternate: with nothing recorded (--no-report), as every run is
sampled, and for a page (--report). Compared are the seconds inside its calls, of the whole `cairn run`, with its node,
and of the processor for launcher and program, which others on the machine disturb least. The processor time of a
service is what the scheduler has counted, at rest and while a program works, without `cairn top` and with it.
"""
import resource
import statistics
import subprocess
import tempfile
import time

from harness.errors import BenchError

PAGE = 4096
ROUNDS = 7


def run(bench):
    managed = bench.directory("managed")
    bench.environment["XDG_STATE_HOME"] = str(bench.directory("state"))
    script = bench.scratch / "calls.script"
    pages, passes = (256, 2) if bench.quick else (8192, 32)
    script.write_text(_script(pages, passes))
    command = bench.worker("io_script", managed, script)
    _compare_runs(bench, managed, command)
    _watch(bench, managed, command)


def _script(pages: int, passes: int) -> str:
    """A file that is written, and then read and written again, by pages."""
    lines = ["process", "open f u"]
    for number in range(passes):
        verb = "read" if number % 2 else "write"
        lines += [f"{verb} f {page * PAGE} {PAGE}" for page in range(pages)]
    return "\n".join([*lines, "close f"]) + "\n"


def _compare_runs(bench, managed, command) -> None:
    page = bench.scratch / "run.html"
    ways = {"unsampled": ["--no-report"], "sampled": [], "for a page": ["--report", str(page)]}
    seconds = {way: [] for way in ways}
    for number in range(1 if bench.quick else ROUNDS):
        # The machine changes meanwhile, so the order does as well.
        order = list(ways) if number % 2 == 0 else list(reversed(ways))
        for way in order:
            for path in managed.iterdir():
                path.unlink()
            seconds[way].append(_one_run(bench, managed, command, ways[way]))
    for way in ("sampled", "for a page"):
        for index, what in enumerate(("in the program's calls", "of the whole command", "of the processor")):
            ratios = [with_it[index] / without[index] for with_it, without in zip(seconds[way], seconds["unsampled"])]
            median = statistics.median(ratios)
            detail = f"{min(ratios):.3f} to {max(ratios):.3f} in {len(ratios)} pairs; " \
                     f"{statistics.median(each[index] for each in seconds['unsampled']):.2f} s without"
            bench.at_most(f"time {what}, {way} / unsampled", median, 1.01, "x", detail=detail)


def _one_run(bench, managed, command, flags) -> tuple:
    began, used_before = time.monotonic(), _used_by_children()
    result = bench.native([bench.cairn, "run", "--ram", "256M", "--tier", "none", "--buffer", managed, *flags, "--",
                           *command])
    return result["io_ns"] / 1e9, time.monotonic() - began, _used_by_children() - used_before


def _used_by_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _watch(bench, managed, command) -> None:
    """The service alone, as a share of one core; `cairn top` is a process of its own, which may run elsewhere."""
    seconds = 1 if bench.quick else 8
    with bench.node("--ram", "256M", "--tier", "none") as node:
        node.run(command, managed)
        at_rest = _share(node.service_pid, seconds)
        with _top(bench, node.name):
            watched = _share(node.service_pid, seconds)
        bench.at_most("cairn top: share of a core, service of a node at rest", 100 * (watched - at_rest), 1, "%",
                      detail=f"{100 * at_rest:.3f} % without")
        busy, busy_watched = [], []
        for _ in range(1 if bench.quick else 3):
            busy.append(_share_while_busy(bench, node, managed, command, None))
            busy_watched.append(_share_while_busy(bench, node, managed, command, node.name))
        bench.at_most("cairn top: share of a core, service of a busy node",
                      100 * (statistics.median(busy_watched) - statistics.median(busy)), 1, "%",
                      detail=f"{100 * statistics.median(busy):.2f} % without, spread "
                             f"{100 * (max(busy) - min(busy)):.2f} %")


class _top:
    """A `cairn top` that looks each second, as one in a terminal does."""

    def __init__(self, bench, node: str):
        self._log = tempfile.TemporaryFile()
        self._process = subprocess.Popen([bench.cairn, "top", "--node", node, "--csv"], env=bench.environment,
                                         stdout=self._log, stderr=subprocess.DEVNULL)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        had_ended = self._process.poll() is not None
        self._process.terminate()
        self._process.wait(10)
        self._log.close()
        if had_ended:
            raise BenchError("cairn top has ended by itself")


def _share_while_busy(bench, node, managed, command, watched) -> float:
    before, began = _processor_seconds(node.service_pid), time.monotonic()
    if watched:
        with _top(bench, watched):
            node.run(command, managed)
    else:
        node.run(command, managed)
    return (_processor_seconds(node.service_pid) - before) / (time.monotonic() - began)


def _share(pid: int, seconds: float) -> float:
    before = _processor_seconds(pid)
    time.sleep(seconds)
    return (_processor_seconds(pid) - before) / seconds


def _processor_seconds(pid: int) -> float:
    """All threads, those that have ended as well: the clock that clock_getcpuclockid(3) names."""
    return time.clock_gettime((~pid << 3) | 2)
