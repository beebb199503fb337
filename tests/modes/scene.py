# SPDX-License-Identifier: Apache-2.0
"""What the scenes of the buffering modes share: directories that are buffered, programs in them, nodes."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import under_cairn  # noqa: E402
from puppet import Puppet, has_any_of, pattern, puppet_words  # noqa: E402

CREATE = os.O_RDWR | os.O_CREAT
# Longer than any background flush that is not meant to happen would take.
QUIET_SECONDS = 0.8


class Check:
    """One scene: a directory that is buffered, and a puppet in it."""

    def __init__(self, name, *options, config=""):
        self.work = under_cairn.work_directory("modes-" + name)
        self.directory = self.work / "data"
        self.directory.mkdir()
        self.prepare()
        if config:
            (self.work / "cairn.yaml").write_text(config)
            options = (*options, "--config", self.work / "cairn.yaml")
        self.puppet = Puppet(under_cairn.cairn_command(puppet_words(), self.directory, options=map(str, options)),
                             self.directory)
        self.ended = False

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.puppet.kill()
        if kind is None:
            under_cairn.remove(self.work)

    def prepare(self):
        """Prepares the files that are to be there before the run begins."""

    def path(self, name):
        return self.directory / name

    def open(self, name, flags=CREATE):
        return self.puppet.call("open", str(self.path(name)), flags)

    def end(self):
        status = self.puppet.end()
        assert status == 0, f"exit status {status}: {self.puppet.errors[-600:]}"


def stays_away(path, data, offset=0):
    time.sleep(QUIET_SECONDS)
    return not has_any_of(path, data, offset)


# ---- modes and triggers -----------------------------------------------------------------------------------


class Node:
    """A node of its own (`cairn up`), with commands to it."""

    def __init__(self, *options, ram="32M", tier="64M", slower="", variables=None):
        self.work = under_cairn.work_directory("modes-node")
        self.directory = self.work / "data"
        self.tier = self.work / "tier"
        self.directory.mkdir()
        self.tier.mkdir()
        self.place = self.directory / "temporary"
        self.place.mkdir()
        (self.directory / "mine").mkdir()
        self.environment = under_cairn.clean_environment(
            {"CAIRN_RUN_ROOT": str(self.work / "run"), "XDG_STATE_HOME": str(self.work / "state"), **(variables or {})})
        (self.work / "run").mkdir(mode=0o700)
        if slower:  # a second file tier
            (self.work / "slower").mkdir()
            options = ("--tier", f"{self.work / 'slower'}:{slower}", *options)
        self.storage = ("--ram", ram, "--tier", f"{self.tier}:{tier}" if tier else "none")
        self.up(*options)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.cairn("down", "--node", "n", "--discard", check=kind is None)
        if kind is None:
            under_cairn.remove(self.work)

    def cairn(self, *words, check=True, status=0):
        done = subprocess.run([str(under_cairn.CAIRN), *map(str, words)], cwd=self.directory, text=True,
                              env=self.environment, capture_output=True, timeout=120, stdin=subprocess.DEVNULL)
        if check and done.returncode != status:
            raise AssertionError(f"cairn {' '.join(map(str, words))}: {done.returncode}, not {status}: {done.stderr}")
        return done.stdout + done.stderr

    def up(self, *options):
        self.cairn("up", "--name", "n", *self.storage, "--buffer", self.directory, *options)

    def puppet(self, *options):
        words = [under_cairn.CAIRN, "run", "--no-report", "--node", "n", *options, "--", *puppet_words()]
        return Puppet(words, self.directory, self.environment)

    def status(self):
        return json.loads(self.cairn("status", "--node", "n", "--json"))

    def holding(self, launcher, tier="ram"):
        """What a run has of a tier, by the process of its `cairn run`; None when it is not under way."""
        for run in self.status()["runs"]:
            if run["run"] == str(launcher.pid):
                return next(held for held in run["tiers"] if held["name"] == tier)
        return None

    def tiers_of(self, name):
        """Which tiers hold blocks of the file, with their bytes."""
        reply = json.loads(self.cairn("explain", "--node", "n", "--json", self.directory / name))
        tiers = {}
        for part in reply.get("ranges", []):
            tiers[part["tier"]] = tiers.get(part["tier"], 0) + part["end"] - part["begin"]
        return tiers


def write_file(puppet, path, megabytes, seed=1):
    file = puppet.call("open", str(path), CREATE)
    for step in range(megabytes):
        puppet.call("pwrite", file, pattern(seed, 1 << 20), step << 20)
    puppet.call("close", file)
