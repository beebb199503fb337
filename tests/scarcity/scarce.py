# SPDX-License-Identifier: Apache-2.0
"""What the scenes share: programs that run natively and under Cairn with little of something, and are compared."""

import contextlib
import os
import signal
import subprocess
import sys
import textwrap

import under_cairn

# Nothing is stored before somebody has to: what is lost is not hidden by a flush in the background.
NOTHING_BY_TIME = "flush:\n  delay_ms: 3600000\n"


class Programs:
    """A Python program, run in a directory of its own natively and in another one under Cairn."""

    def __init__(self, name, source, capacities="", config=NOTHING_BY_TIME, before=(), timeout=120):
        self.work = under_cairn.work_directory("scarcity-" + name)
        self.capacities, self.before, self.timeout = capacities, list(before), timeout
        self.program = self.work / "program.py"
        self.program.write_text(textwrap.dedent(source))
        self.config = self.work / "cairn.yaml"
        self.config.write_text(config)

        self.run_root = self.work / "run"
        self.run_root.mkdir(mode=0o700)

    def end_node(self):
        """A node that could not store everything stays: not that of a test."""
        for file in self.run_root.glob("*/node.pid"):
            under_cairn.kill_node(int(file.read_text()))

    def remove(self):
        under_cairn.remove(self.work)

    def node(self):
        """The process of the node."""
        return int(next(self.run_root.glob("*/node.pid")).read_text())

    def prepared(self, kind, words):
        """Command, directory and environment."""
        directory = self.work / kind
        directory.mkdir()
        command = [sys.executable, str(self.program), *map(str, words)]
        environment = under_cairn.clean_environment(
            {"PYTHONDONTWRITEBYTECODE": "1", "CAIRN_RUN_ROOT": str(self.run_root)})
        if kind == "cairn":
            if self.capacities:
                environment["CAIRN_TEST_CAPACITIES"] = self.capacities
            command = under_cairn.cairn_command(command, directory, options=["--config", str(self.config)])
        return self.before + command, directory, environment

    @contextlib.contextmanager
    def start(self, *words):
        """The program under Cairn, to be talked to."""
        command, directory, environment = self.prepared("cairn", words)
        with subprocess.Popen(command, cwd=directory, env=environment, text=True, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
            try:
                yield run
            finally:
                run.kill()

    def run(self, kind, *words):
        command, directory, environment = self.prepared(kind, words)
        outcome = under_cairn.execute(command, directory, self.timeout, environment)
        return outcome, under_cairn.read_tree(directory)

    def agree(self, *words):
        native, native_tree = self.run("native", *words)
        other, tree = self.run("cairn", *words)
        self.end_node()
        assert native.status == 0 and not native.timed_out, f"natively: {native}: {native.errors[-600:]}"
        where = f"(kept {self.work})"
        assert not other.timed_out, f"under Cairn: {other}: {other.errors[-900:]} {where}"
        assert other.status == 0, f"under Cairn: {other}: {other.output[-300:]} {other.errors[-900:]} {where}"
        for a, b in zip(native.output.splitlines() + ["(end)"], other.output.splitlines() + ["(end)"]):
            assert a == b, f"natively {a!r}, under Cairn {b!r}: {other.errors[-900:]} {where}"
        lines = under_cairn.compare_trees(native_tree, tree)
        assert not lines, "\n  ".join(["what is stored afterwards differs:", *lines[:8], where])
        self.remove()


def with_descriptors(count):
    """Words before a command that limit it, and the node that it starts, to so many descriptors."""
    words = ["sh", "-c", f'ulimit -n {count}; exec "$@"', "sh"]
    # The node of root would raise its limit otherwise.
    if os.geteuid() == 0:
        words += ["setpriv", "--bounding-set", "-sys_resource", "--inh-caps", "-sys_resource"]
    return words
