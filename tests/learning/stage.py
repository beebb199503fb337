# SPDX-License-Identifier: Apache-2.0
"""What the scenes of learning share: a node with a configuration, files in it, programs that read them in some order.

Nodes, puppets and patterns of bytes are those of the suite of buffering modes.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "modes")]
import under_cairn  # noqa: E402
from puppet import Puppet, soon  # noqa: E402
from scene import Node  # noqa: E402

KIB, MIB, BLOCK = 1 << 10, 1 << 20, 1 << 16
READ_LIST = under_cairn.BUILD / "bench/read_list"
# Nothing of this takes so long; only then is something lost for good.
LONG_SECONDS = 30
# A program whose last hits the node finds when it has ended: hits are not urgent, it sleeps through them.
READ_AGAIN_AND_END = """
import os, sys, time
file = os.open(sys.argv[1], os.O_RDONLY)
for at in range(16):
    os.pread(file, 65536, at * 65536)
time.sleep(0.2)
for at in range(500):
    os.pread(file, 4096, at * 7 % 16 * 65536)
os._exit(0)
"""


class Stage(Node):
    """A node of its own, without file tiers if none is asked for.

    `also_buffered`: another directory. `variables`: of the environment.
    """

    def __init__(self, config="", schema="", ram="64M", tier=None, also_buffered=None, variables=None):
        self.settings = under_cairn.work_directory("learning-settings")
        options = ["--buffer", also_buffered] if also_buffered else []
        for flag, name, text in (("--config", "cairn.yaml", config), ("--schema", "rules.yaml", schema)):
            if text:
                (self.settings / name).write_text(text)
                options += [flag, self.settings / name]
        self.is_up = True
        self.ram = ram
        super().__init__(*options, ram=ram, tier=tier, variables=variables)

    def __exit__(self, kind, *rest):
        if self.is_up:
            super().__exit__(kind, *rest)
        if kind is None:
            under_cairn.remove(self.work)
            under_cairn.remove(self.settings)

    def down(self):
        self.cairn("down", "--node", "n")
        self.is_up = False

    def up_again(self):
        """Another node like the one that ended."""
        self.cairn("up", "--name", "n", "--ram", self.ram, "--tier", "none", "--buffer", self.directory)
        self.is_up = True

    def make(self, name, megabytes):
        """A file with what read_list compares; Cairn knows nothing of it yet."""
        path = self.directory / name
        subprocess.run([READ_LIST, path, "--make", str(megabytes * MIB)], check=True, stdout=subprocess.DEVNULL)
        return path

    def run(self, *words, options=(), status=0):
        return self.cairn("run", "--no-report", "--node", "n", *options, "--", *words, status=status)

    def begin(self, *words, **streams):
        """A command of Cairn that goes on; the caller waits for it."""
        line = [under_cairn.CAIRN, *words]
        return subprocess.Popen([str(word) for word in line], cwd=self.directory, env=self.environment,
                                text=True, stdin=subprocess.DEVNULL, **streams)

    def start(self, *words, **streams):
        """The same of a program under Cairn."""
        return self.begin("run", "--no-report", "--node", "n", "--", *words, **streams)

    def reading(self, path, order, compute_us=2000, batch=1, name="order"):
        """The words that read blocks in this order, None opening the file anew, and compare each byte.

        After `batch` blocks the program computes so long for each of them. `name`: of the file with the order.
        """
        order_file = self.work / name
        order_file.write_text("".join("=\n" if block is None else f"{block * BLOCK} {BLOCK}\n" for block in order))
        return READ_LIST, path, "--list", order_file, "--compute-us", compute_us, "--batch", batch

    def read_in_order(self, path, order, compute_us=2000, batch=1):
        self.run(*self.reading(path, order, compute_us, batch))

    def reader(self):
        """A puppet that knows of advice, too."""
        words = [under_cairn.CAIRN, "run", "--no-report", "--node", "n", "--", sys.executable, HERE / "reader.py"]
        return Puppet(words, self.directory, self.environment)

    def fetched(self, predictor=None):
        """What `cairn status` says of what was fetched ahead, summed up."""
        lines = [line for line in self.status()["fetches"] if predictor in (None, line["predictor"])]
        return {key: sum(line[key] for line in lines) for key in
                ("fetched_bytes", "used_bytes", "late_bytes", "evicted_unused_bytes", "unused_bytes")}

    def counter(self, name):
        return self.status()["counters"][name]

    def resident(self, name):
        """Which bytes of the file are in a tier: [(begin, end)], with what adjoins joined."""
        reply = json.loads(self.cairn("explain", "--node", "n", "--json", self.directory / name))
        ranges = []
        for part in reply.get("ranges", []):
            if ranges and ranges[-1][1] == part["begin"]:
                ranges[-1] = (ranges[-1][0], part["end"])
            else:
                ranges.append((part["begin"], part["end"]))
        return ranges

    def open_in_service(self, word):
        """The descriptors of the service that lead to files with this in their path."""
        directory = Path(f"/proc/{self.status()['service_pid']}/fd")
        found = []
        for entry in directory.iterdir():
            try:
                target = os.readlink(entry)
            except FileNotFoundError:
                continue
            if word in target:
                found.append(target)
        return found

    def log(self):
        return (Path(self.status()["directory"]) / "node.log").read_text()


def eventually(condition):
    return soon(condition, LONG_SECONDS)
