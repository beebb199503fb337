# SPDX-License-Identifier: Apache-2.0
"""The ways of treating files that the differential engine runs under: each buffering mode, flush trigger and
placement policy, and mixes of them by rules. Tiers are so small that eviction and every file tier take part."""

from pathlib import Path

# The names that scripts use are listed in operation.cc, name_of().
MIXED_RULES = """rules:
  - {name: sync, path: s0, mode: persistent-sync}
  - {name: kernel, path: s1, never-buffer: true}
  - {name: close, path: s2, trigger: per-file, policy: round-robin}
  - {name: each, path: s3, trigger: per-operation, place: {tier: tier2}}
  - {name: end, path: s4, trigger: on-exit, policy: max-locality}
  - {name: look, path: s5, access: read, never-buffer: true}
  - {name: readers, path: "p*", access: read, policy: random, priority: 0, reserve: "tier1:512K"}
  - {name: own, path: "p*_0", mode: persistent-sync, place: {tier: tier1}}
  - {name: low, path: "d?/*", place: {tier: tier2}, priority: 7, prefetch: none, reserve: "tier2:1M"}
"""
# A file that is scratch once is gone at the end, whatever its name is then.
SCRATCH_RULES = """rules:
  - {name: small, path: "s*", size: {max: 20K}, mode: scratch}
  - {name: temporary, path: "p*", mode: scratch, place: {tier: tier1}}
  - {name: sync, path: s3, mode: persistent-sync}
  - {name: kernel, path: s4, never-buffer: true}
"""

# Ranges that begin and end inside blocks, next to each other and over each other.
PART_RULES = """rules:
  - {name: raw, path: "s*", offset: {begin: 70000, end: 200K}, never-buffer: true}
  - {name: head, path: "s*", offset: {end: 64K}, place: {tier: tier1, pin: true}}
  - {name: back, path: "*", offset: {begin: 320K}, place: {tier: tier2}, priority: 0}
  - {name: sync, path: s1, mode: persistent-sync}
  - {name: own, path: "p*", offset: {begin: 4K, end: 1M}, mode: bypass}
  - {name: readers, path: "d?/*", access: read, offset: {begin: 64K}, never-buffer: true}
"""


class Configuration:
    """Options of `cairn run`; what is to be in its configuration file and schema; what may differ."""

    def __init__(self, name, *options, config="", schema="", ram="", scratch_directory=False, gone=False):
        self.name, self.options, self.config, self.schema = name, options, config, schema
        self.ram = ram  # instead of the size that run.py was given
        self.scratch_directory = scratch_directory  # the programs' directory is scratch
        self.gone = gone  # files may be missing afterwards, because they are scratch

    def command_options(self, work, directory):
        """Writes what the options refer to below `work`. Returns the words for `cairn run`."""
        words = list(self.options)
        for option, name, text in (("--config", "cairn.yaml", self.config), ("--schema", "rules.yaml", self.schema)):
            if text:
                (work / name).write_text(text)
                words += [option, str(work / name)]
        if self.scratch_directory:
            words += ["--scratch", str(directory)]
        return words


NOTHING_BY_TIME = "flush:\n  delay_ms: 3600000\n"
EAGER = "flush:\n  delay_ms: 1\n"

MODES = [
    Configuration("periodic", config=EAGER),
    Configuration("amount", config="flush:\n  delay_ms: 3600000\n  amount: 64K\n"),
    Configuration("per-operation", "--trigger", "per-operation", config=NOTHING_BY_TIME),
    Configuration("per-file", "--trigger", "per-file", config=NOTHING_BY_TIME),
    Configuration("on-exit", "--trigger", "on-exit", config=NOTHING_BY_TIME),
    Configuration("persistent-sync", "--mode", "persistent-sync"),
    Configuration("bypass", "--mode", "bypass"),
    Configuration("scratch", "--mode", "scratch", gone=True),
    Configuration("scratch-directory", scratch_directory=True, gone=True),
    Configuration("mixed", schema=MIXED_RULES),
    Configuration("mixed-scratch", schema=SCRATCH_RULES, gone=True),
    Configuration("parts", schema=PART_RULES),
]
POLICIES = [Configuration(name, "--policy", name) for name in (
    "max-bandwidth", "max-locality", "hot-data", "round-robin", "random", "fastest-with-room", "minimize-io-time")]
POLICIES.append(Configuration("file-tiers-alone", "--policy", "round-robin", ram="0"))
ALL = {each.name: each for each in MODES + POLICIES}


def named(text):
    """The configurations of a comma separated list; `all`, `modes` and `policies` stand for several."""
    groups = {"all": list(ALL.values()), "modes": MODES, "policies": POLICIES}
    chosen = []
    for word in text.split(","):
        if word not in groups and word not in ALL:
            raise ValueError(f'there is no configuration "{word}"; there are {", ".join([*groups, *ALL])}')
        chosen += groups.get(word) or [ALL[word]]
    return chosen


def make_tiers(work):
    """Two small file tiers below a RAM tier of 1 MiB, as options of run.py have them."""
    tiers = []
    for name, size in (("tier1", "2M"), ("tier2", "4M")):
        directory = Path(work) / name
        directory.mkdir(exist_ok=True)
        tiers.append(f"{directory}:{size}")
    return tiers
