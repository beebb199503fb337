# SPDX-License-Identifier: Apache-2.0
"""A program that reads at random for a given time, and says how long single reads took."""
import json
import subprocess

from .errors import BenchError


class Reader:
    """The worker read_latency under a node; its file is resident once this is made."""

    def __init__(self, bench, node, path, buffer):
        words = node.command(bench.worker("read_latency", path), buffer)
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                         env=bench.environment, cwd=bench.scratch)
        self._line()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.stdin.close()
        self._process.wait(60)

    def _line(self) -> str:
        line = self._process.stdout.readline()
        if not line:
            raise BenchError(f"the reader ended with {self._process.wait()}")
        return line

    def read_for(self, milliseconds: int) -> dict:
        self._process.stdin.write(f"{milliseconds}\n")
        self._process.stdin.flush()
        return json.loads(self._line())
