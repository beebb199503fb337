# SPDX-License-Identifier: Apache-2.0
"""What one benchmark works with: scratch directories, workers, nodes, a testbed device, its cases."""
import contextlib
import dataclasses
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys

from . import node as node_module
from .errors import BenchError, Skip

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
SCRATCH_PREFIX = "cairn-bench-"
# Longer than any single worker or drain takes; a hang becomes a failure that says which command it was.
COMMAND_SECONDS = 1800


@dataclasses.dataclass(frozen=True)
class Case:
    """One line of the table. detail is for people only: what the two sides of a ratio were."""
    name: str
    value: float
    target: float
    unit: str
    at_most: bool
    ok: bool
    detail: str


class Context(contextlib.ExitStack):
    """Everything made through it is taken down in reverse order when the benchmark ends."""

    def __init__(self, name: str, quick: bool):
        super().__init__()
        module = sys.modules[f"suites.{name}"]
        self.name = name
        self.purpose = module.__doc__.splitlines()[0]
        self.quick = quick
        self.pairs = 1 if quick else int(os.environ.get("CAIRN_BENCH_PAIRS", "5"))
        self.cases = []
        self.notes = []
        build = pathlib.Path(os.environ.get("CAIRN_BENCH_BUILD", REPOSITORY / "build/release"))
        self.cairn = build.absolute() / "bin/cairn"
        self.preload = build.absolute() / "lib/libcairn_preload.so"
        self._workers = build.absolute() / "bench"
        if not self.cairn.exists() or not (self._workers / "random_io").exists():
            raise BenchError(f"{build} holds no cairn or no benchmark workers; run ./dev build first")
        self.scratch = self._make_scratch(os.environ.get("CAIRN_BENCH_DIR", "/var/tmp"))
        self.memory = self._make_scratch("/dev/shm")
        self.run_root = self.scratch / "run"
        self.run_root.mkdir(mode=0o700)
        self.environment = {key: value for key, value in os.environ.items()
                            if not key.startswith("CAIRN_")}
        self.environment["CAIRN_RUN_ROOT"] = str(self.run_root)
        # No round knows what the one before it read.
        self.environment["CAIRN_PREFETCH_REMEMBER"] = "none"
        # Workers in Python leave nothing beside their sources.
        self.environment["PYTHONDONTWRITEBYTECODE"] = "1"

    def _make_scratch(self, parent: str) -> pathlib.Path:
        """A directory of this process; those of processes that died are removed on the way."""
        for old in pathlib.Path(parent).glob(f"{SCRATCH_PREFIX}*"):
            if not pathlib.Path("/proc", old.name.removeprefix(SCRATCH_PREFIX)).exists():
                shutil.rmtree(old, ignore_errors=True)
        directory = pathlib.Path(parent) / f"{SCRATCH_PREFIX}{os.getpid()}"
        directory.mkdir(mode=0o700)
        self.callback(shutil.rmtree, directory, ignore_errors=True)
        return directory

    def directory(self, name: str) -> pathlib.Path:
        """A directory on the scratch file system (ext4, unless the user chose another)."""
        path = self.scratch / name
        path.mkdir(exist_ok=True)
        return path

    def size(self, full: str, quick: str) -> str:
        return quick if self.quick else full

    # ---- running programs -----------------------------------------------------------------------------

    def worker(self, name: str, *arguments) -> list:
        """The command line of a worker; run it with native() or with a node's run()."""
        return [str(self._workers / name), *map(str, arguments)]

    def python_worker(self, python: str, name: str, *arguments) -> list:
        """The same of a worker written in Python, for an interpreter that has what it imports."""
        return [python, str(REPOSITORY / "bench/workers" / f"{name}.py"), *map(str, arguments)]

    def native(self, command, **more) -> dict:
        return json.loads(self.output(command, **more) or "{}")

    def output(self, command, environment=None, cwd=None, accept=(0,)) -> str:
        """Runs a command to its end and returns its standard output; any failure ends the benchmark."""
        words = [str(word) for word in command]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   stdin=subprocess.DEVNULL, start_new_session=True,
                                   env=environment or self.environment, cwd=cwd or self.scratch)
        try:
            out, complaint = process.communicate(timeout=COMMAND_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise BenchError(f"'{' '.join(words)}' did not end in {COMMAND_SECONDS} s") from error
        finally:
            if process.poll() is None:
                _end_group(process)
        if process.returncode not in accept:
            raise BenchError(f"'{' '.join(words)}' ended with {process.returncode}: "
                             f"{complaint.strip()[-1500:]}")
        return out

    def node(self, *arguments, name: str = "bench", cairn=None):
        """A running node (`cairn up`), taken down with the benchmark; `cairn`: the command of another build."""
        return self.enter_context(node_module.Node(self, name, arguments, cairn or self.cairn))

    # ---- the machine ----------------------------------------------------------------------------------

    def need_root(self, why: str) -> None:
        if os.geteuid() != 0:
            raise Skip(f"needs root: {why}")

    def need_memory(self, gibibytes: float, what: str) -> None:
        available = next(int(line.split()[1]) / 2**20 for line in open("/proc/meminfo")
                         if line.startswith("MemAvailable"))
        if available < gibibytes:
            raise Skip(f"{what} needs {gibibytes:g} GiB of free memory; there are {available:.1f}")

    def drop_caches(self) -> None:
        """Empties the caches, so that reads come from their devices again; --quick does without."""
        if self.quick:
            return
        self.need_root("dropping the kernel's caches")
        os.sync()
        pathlib.Path("/proc/sys/vm/drop_caches").write_text("3", encoding="ascii")

    def testbed(self, device: str) -> pathlib.Path:
        """A directory on a device of bench/testbed, which is brought up and down when it is not up."""
        self.need_root(f"the throttled '{device}' of bench/testbed")
        testbed = REPOSITORY / "bench/testbed"
        point = pathlib.Path("/run/cairn-testbed/mnt") / device
        if not os.path.ismount(point):
            self.callback(subprocess.run, [testbed, "down", device], check=False,
                          stdout=subprocess.DEVNULL)
            try:
                # The benchmark measures the device's rate itself, in the same run.
                self.output([testbed, "up", "--no-verify", device], environment=dict(os.environ))
            except BenchError as error:
                raise Skip(f"the testbed did not come up: {error}") from error
        directory = point / f"{SCRATCH_PREFIX}{os.getpid()}"
        directory.mkdir()
        self.callback(shutil.rmtree, directory, ignore_errors=True)
        return directory

    # ---- results --------------------------------------------------------------------------------------

    def in_turns(self, first, second) -> list:
        """Runs the two measurements A B A B ...; returns the pairs of what they returned."""
        return [(first(), second()) for _ in range(self.pairs)]

    def at_least(self, name: str, value: float, target: float, unit: str = "x", detail: str = "",
                 noise: float = 0):
        """noise: how far (as a part of the target) two equal measurements of this kind lie apart."""
        self._add(name, value, target, unit, False, detail, noise)

    def at_most(self, name: str, value: float, target: float, unit: str, detail: str = ""):
        self._add(name, value, target, unit, True, detail, 0)

    def speed_up(self, name: str, pairs, key, target: float, unit: str = "ns",
                 noise: float = 0) -> None:
        """Records how many times faster the first of each pair is; key picks the time out of a result."""
        times = [(key(first), key(second)) for first, second in pairs]
        ratio = statistics.median(second / first for first, second in times)
        ours, theirs = (statistics.median(side) for side in zip(*times))
        self.at_least(name, ratio, target, detail=f"{ours:.4g} against {theirs:.4g} {unit}",
                      noise=noise)

    def _add(self, name, value, target, unit, at_most, detail, noise) -> None:
        reached = value <= target if at_most else value >= target * (1 - noise)
        self.cases.append(Case(name, round(value, 4), target, unit, at_most, self.quick or reached,
                               detail))

    def note(self, text: str) -> None:
        self.notes.append(text)


def _end_group(process) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(5)
            return
