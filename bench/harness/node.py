# SPDX-License-Identifier: Apache-2.0
"""A node of Cairn, driven as a user does: cairn up, run --node, status --json, drain, down."""
import json
import os
import pathlib
import signal
import subprocess
import time

from .errors import BenchError

STOP_SECONDS = 20
TOGETHER_SECONDS = 600


class Node:
    """Use as a context manager; the service is gone afterwards, whatever happened."""

    def __init__(self, bench, name: str, arguments, cairn):
        self._bench = bench
        self._cairn = str(cairn)
        self.name = name
        self._arguments = arguments
        self.service_pid = 0

    def __enter__(self):
        if self.service_pid:
            return self  # its maker has entered it already
        self._bench.output([self._cairn, "up", "--name", self.name, *self._arguments])
        self.service_pid = self.status()["service_pid"]
        return self

    def __exit__(self, *_):
        if not self.service_pid:
            return  # left already; the number may be somebody else's by now
        try:
            subprocess.run([self._cairn, "down", "--node", self.name], check=False,
                           env=self._bench.environment, timeout=600, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, cwd=self._bench.scratch)
        except subprocess.TimeoutExpired:
            pass
        self._make_sure_it_is_gone()
        self.service_pid = 0

    def _make_sure_it_is_gone(self) -> None:
        deadline = time.monotonic() + STOP_SECONDS
        while self.service_pid and pathlib.Path(f"/proc/{self.service_pid}").exists():
            if time.monotonic() > deadline:
                os.killpg(os.getpgid(self.service_pid), signal.SIGKILL)  # and its keeper
                self._bench.note("the node did not leave by itself and was killed")
                return
            time.sleep(0.05)

    def command(self, command, buffer, flags=()) -> list:
        """The command line that runs a program under this node with one buffered directory."""
        return [self._cairn, "run", "--no-report", "--node", self.name, "--buffer",
                str(buffer), *flags, "--", *map(str, command)]

    def run(self, command, buffer, flags=()) -> dict:
        """Runs a worker under this node; returns what it printed."""
        return json.loads(self._bench.output(self.command(command, buffer, flags)) or "{}")

    def run_together(self, commands, buffer) -> list:
        """Runs workers at the same time under this node; returns what each printed."""
        programs = [subprocess.Popen(self.command(command, buffer), env=self._bench.environment, text=True,
                                     stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) for command in commands]
        results = []
        for program in programs:
            said, _ = program.communicate(timeout=TOGETHER_SECONDS)
            if program.returncode != 0:
                raise BenchError(f"one of {len(programs)} programs ended with {program.returncode}")
            results.append(json.loads(said))
        return results

    def status(self) -> dict:
        text = self._bench.output([self._cairn, "status", "--node", self.name, "--json"])
        return json.loads(text)

    def drain(self) -> float:
        """Waits until everything is stored; returns the seconds that took."""
        begin = time.monotonic()
        self._bench.output([self._cairn, "drain", "--node", self.name])
        if self.status()["backing"]["dirty_bytes"] != 0:
            raise BenchError("drain returned with unstored bytes")
        return time.monotonic() - begin

    def preload_environment(self, buffer) -> dict:
        """What `cairn run` gives a program, for workers that are started without it."""
        return {**self._bench.environment, "LD_PRELOAD": str(self._bench.preload),
                "CAIRN_SOCKET": str(self._bench.run_root / self.name / "client.sock"),
                "CAIRN_BUFFER": str(buffer), "CAIRN_RUN": "1"}
