# SPDX-License-Identifier: Apache-2.0
"""What `cairn advise` predicts for twelve programs under six configurations, against what they take.

One run of each program is recorded, on a node with the default configuration; all six predictions are made from that
trace and from what `cairn profile` measures of the devices. Then the program runs under each configuration with cold
caches, on `hdd` of the testbed, with file tiers on `nvme`. The seconds compared are those inside the I/O calls of the
slowest process; every byte that is read is compared.

CAIRN_MODELS_AGAIN=1 records and predicts anew and compares with the kept runs, which takes two minutes instead of six.
CAIRN_MODELS_ONLY names programs (with commas). The cells of each are kept in build/bench/models/, and the summary has
those of programs that are not run this time from there.
"""
import dataclasses
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

from harness import predictions, programs
from harness.context import REPOSITORY
from harness.errors import BenchError
from harness.predictions import Cell, WITHOUT

DEFAULT = "ram-large"
# The matrix at tiny sizes has these alone.
QUICK_PROGRAMS = ("log", "mixed")
RECORD_SECONDS = 10


def run(bench):
    kept = REPOSITORY / "build/bench/models"
    bench.environment["XDG_STATE_HOME"] = str(bench.directory("state"))
    if not bench.quick:
        kept.mkdir(parents=True, exist_ok=True)
        os.environ.setdefault("CAIRN_TESTBED_NVME_SIZE", "1G")
        os.environ.setdefault("CAIRN_TESTBED_HDD_SIZE", "2G")
    store, fast = (bench.directory(name) if bench.quick else bench.testbed(name) for name in ("hdd", "nvme"))
    _profile(bench, store, fast)
    cells = []
    wanted = [name for name in os.environ.get("CAIRN_MODELS_ONLY", "").split(",") if name]
    for program in programs.programs(bench.quick):
        if bench.quick and program.name not in QUICK_PROGRAMS:
            _run_alone(bench, store, program)
        elif wanted and program.name not in wanted:
            cells.extend(_kept_cells(kept / f"{program.name}.json"))
        else:
            again = os.environ.get("CAIRN_MODELS_AGAIN", "") not in ("", "0")
            before = _kept_cells(kept / f"{program.name}.json") if again and not bench.quick else []
            measured = Matrix(bench, store, fast, program).cells(before)
            cells.extend(measured)
            if not bench.quick:
                _keep(bench, kept, program, measured)
    for line in predictions.rows(cells):
        bench.note(line)
    predictions.judge(bench, cells, DEFAULT)


def _profile(bench, store, fast) -> None:
    seconds = ["--seconds", "0.3", "--space", "8M"] if bench.quick else []
    tiers = bench.scratch / "profile.yaml"
    tiers.write_text(f"tiers:\n  - {{name: nvme, directory: {fast}, capacity: 256M}}\n")
    # Memory, the tier, and the directory that one is in.
    bench.output([bench.cairn, "profile", "--json", *seconds, "--config", tiers], cwd=store)


def _kept_cells(path: pathlib.Path) -> list:
    if not path.exists():
        return []
    return [Cell(**cell) for cell in json.loads(path.read_text())]


def _keep(bench, kept: pathlib.Path, program, cells: list) -> None:
    (kept / f"{program.name}.json").write_text(json.dumps([dataclasses.asdict(cell) for cell in cells], indent=1))
    shutil.copy(bench.scratch / f"{program.name}.trace", kept)
    shutil.copy(bench.scratch / "state/cairn/profiles.json", kept)


def _run_alone(bench, store, program) -> None:
    """That the program does what its script says, and finds the bytes that it wrote."""
    place = Place(bench, store, program)
    place.make_inputs()
    bench.native(place.command)
    place.remove()


class Place:
    """The directory of a program, and its scripts."""

    def __init__(self, bench, store, program):
        self._bench = bench
        self._program = program
        self.directory = store / program.name
        script = bench.scratch / f"{program.name}.script"
        script.write_text(program.text())
        self.command = bench.worker("io_script", self.directory, script)

    def make_inputs(self) -> None:
        self.directory.mkdir()
        if not self._program.inputs:
            return
        script = self._bench.scratch / "inputs.script"
        script.write_text(programs.maker(self._program))
        self._bench.native(self._bench.worker("io_script", self.directory, script))

    def make_cold(self) -> None:
        """Without what a run before has written, and without what the kernel has read."""
        for path in self.directory.iterdir():
            if path.name not in self._program.inputs:
                path.unlink()
        self._bench.drop_caches()

    def remove(self) -> None:
        shutil.rmtree(self.directory)


class Matrix:
    """One program: its trace, its runs, and what was predicted of them."""

    def __init__(self, bench, store, fast, program):
        self._bench = bench
        self._fast = fast
        self._program = program
        self._place = Place(bench, store, program)
        self._trace = bench.scratch / f"{program.name}.trace"

    def cells(self, measured: list) -> list:
        self._place.make_inputs()
        self._record()
        found = measured or [self._measure(name) for name in self._configurations()]
        for cell in found:
            self._predict(cell)
        self._place.remove()
        return found

    def _configurations(self) -> dict:
        """Cheap ones first. Each is a file of configuration."""
        tier = f"tiers:\n  - {{name: nvme, directory: {self._fast}, capacity: 256M"
        return {
            WITHOUT: "ram:\n  capacity: 512M\n",
            "ram-small": "ram:\n  capacity: 32M\n",
            "ram+nvme": f"ram:\n  capacity: 32M\n{tier}}}\n",
            "ram-large": "ram:\n  capacity: 512M\n",
            "write-through": "ram:\n  capacity: 512M\nbuffer:\n  mode: persistent-sync\n",
            "durable": f"ram:\n  capacity: 512M\n{tier}, durable: true}}\ndurability:\n  level: node\n",
        }

    def _settings(self, name: str) -> pathlib.Path:
        path = self._bench.scratch / f"{name}.yaml"
        path.write_text(self._configurations()[name])
        return path

    def _record(self) -> None:
        bench = self._bench
        self._place.make_cold()
        with bench.node("--config", self._settings(DEFAULT)) as node:
            words = [str(bench.cairn), "trace", "record", "--node", node.name, str(self._trace)]
            with subprocess.Popen(words, env=bench.environment, stdout=subprocess.PIPE, text=True) as recorder:
                try:
                    self._wait_for_trace()
                    node.run(self._place.command, self._place.directory)
                finally:
                    recorder.send_signal(signal.SIGINT)
                said, _ = recorder.communicate(timeout=RECORD_SECONDS)
        if recorder.returncode != 0 or "missing" in said:
            raise BenchError(f"{self._program.name}: the trace is not whole: {said.strip()}")

    def _wait_for_trace(self) -> None:
        deadline = time.monotonic() + RECORD_SECONDS
        while not self._trace.exists():
            if time.monotonic() > deadline:
                raise BenchError(f"{self._program.name}: no trace is recorded")
            time.sleep(0.01)

    def _measure(self, name: str) -> Cell:
        bench, place = self._bench, self._place
        place.make_cold()
        drain = 0.0
        if name == WITHOUT:
            said = bench.native(place.command)
        else:
            with bench.node("--config", self._settings(name)) as node:
                began = time.monotonic()
                said = node.run(place.command, place.directory)
                node.drain()
                drain = max(0.0, time.monotonic() - began - said["wall_ns"] / 1e9)
        return Cell(self._program.name, name, said["io_ns"] / 1e9, drain_measured=drain)

    def _predict(self, cell: Cell) -> None:
        answer = predictions.advise(self._bench, self._trace, self._place.directory,
                                    self._settings(cell.configuration))
        cell.take(answer["without"] if cell.configuration == WITHOUT else predictions.configured(answer))
