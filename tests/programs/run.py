#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs real programs natively and under Cairn and compares what they said and what they stored.

    run.py                 all workloads
    run.py git sqlite      these
    run.py --native git    only the native run (to develop a workload)
    run.py --list

A workload is a script in workloads/. It starts in an empty managed directory, finds its input in $INPUT and
an unmanaged scratch directory in $SCRATCH. Comments in its head say how to judge it:

    # needs: git rsync            programs (a missing one skips the workload, with one line)
    # python: numpy h5py          packages of build/venv; $PYTHON is its interpreter
    # timeout: 60                 seconds for each of the two runs
    # ignore: .git/index *.o      names whose bytes are not determined; they must exist in both runs
    # volatile: /tmp* build/*     names that need not even exist in both
    # output: exact | none | verdicts
    # options: --ram 8M           further options of `cairn run`

With `verdicts`, output lines are "NAME VERDICT" and only those count that are "ok" natively. Differences that
are explained in expected_differences.txt are printed and do not fail. The workload's stored tree is compared in
names, bytes, modes, link counts and in those times that the programs set. If NAME.verify.sh exists, it then
judges what is stored, run natively in the directory. A script that ends natively with status 77 is skipped; its last
output says why.
"""

import argparse
import fnmatch
import os
import shutil
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import inputs  # noqa: E402
import under_cairn  # noqa: E402

# Inputs carry times of the years before; later times are of the run itself.
EXPLICIT_BEFORE_NS = 1_500_000_000 * 10**9


class Workload:
    def __init__(self, path):
        self.path, self.name = path, path.name.rsplit(".", 1)[0]
        self.settings = {"needs": "", "python": "", "timeout": "60", "ignore": "", "volatile": "",
                         "output": "exact", "options": ""}
        for line in path.read_text().splitlines()[:20]:
            if line.startswith("# ") and ": " in line:
                key, value = line[2:].split(": ", 1)
                if key in self.settings:
                    self.settings[key] = value.strip()
        self.timeout = float(self.settings["timeout"])

    def list_of(self, key):
        return self.settings[key].split()

    def missing(self):
        for program in self.list_of("needs"):
            if not shutil.which(program) and not (under_cairn.TOOLS / "bin" / program).exists():
                return f"no {program} here"
        if self.settings["python"] and not python_of(self):
            return f"build/venv has not all of: {self.settings['python']} (./dev venv makes it)"
        return None


def python_of(workload):
    """The interpreter with the packages that a workload needs, or None."""
    packages = workload.list_of("python")
    if not packages:
        return Path("/usr/bin/python3")
    interpreter = under_cairn.SOURCE / "build/venv/bin/python"
    if not interpreter.exists():
        under_cairn.execute([under_cairn.SOURCE / "dev", "venv", *packages], under_cairn.SOURCE, 600)
    probe = under_cairn.execute([interpreter, "-c", "import " + ",".join(packages)], "/", 60) \
        if interpreter.exists() else None
    return interpreter if probe and probe.status == 0 else None


def run(workload, work, kind):
    directory, scratch = work / kind / "t", work / kind / "scratch"
    directory.mkdir(parents=True)
    scratch.mkdir()
    environment = under_cairn.clean_environment({
        "INPUT": str(inputs.make(under_cairn.SOURCE / "build/suites/input")),
        "SCRATCH": str(scratch), "HOME": str(scratch), "TMPDIR": str(directory),
        "PYTHON": str(python_of(workload)), "TOOLS": str(HERE), "PYTHONDONTWRITEBYTECODE": "1",
        "PATH": f"{under_cairn.TOOLS}/bin:{os.environ['PATH']}", "KIND": kind})
    command = [shutil.which("bash"), workload.path]
    if kind == "cairn":
        options = workload.list_of("options")
        command = under_cairn.cairn_command(command, directory, options=options)
        environment.update({k: v for k, v in os.environ.items() if k.startswith("CAIRN_DEBUG")})
    outcome = under_cairn.execute(command, directory, workload.timeout, environment)
    outcome.output = outcome.output.replace(str(work / kind), "WORK")
    return outcome, under_cairn.read_tree(directory)


def expected_differences():
    """Pairs of (workload, pattern) from expected_differences.txt."""
    pairs = []
    for line in (HERE / "expected_differences.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            pairs.append(tuple(line.split(None, 2)[:2]))
    return pairs


def verdicts(output):
    found = {}
    for line in output.splitlines():
        name, _, verdict = line.rpartition(" ")
        if name:
            found[name] = verdict
    return found


def compare_output(workload, native, cairn):
    mode = workload.settings["output"]
    if mode == "none":
        return []
    if mode == "verdicts":
        before, after = verdicts(native.output), verdicts(cairn.output)
        return [f"{name}: natively ok, under Cairn {after.get(name, 'missing')}"
                for name in sorted(before) if before[name] == "ok" and after.get(name) != "ok"]
    if native.output == cairn.output:
        return []
    pairs = zip(native.output.splitlines(), cairn.output.splitlines())
    for number, (a, b) in enumerate(pairs, 1):
        if a != b:
            return [f"output line {number}: native {a[:300]!r}; under Cairn {b[:300]!r}"]
    return [f"output: native {len(native.output)} bytes, under Cairn {len(cairn.output)}: "
            f"...{native.output[-200:]!r} / ...{cairn.output[-200:]!r}"]


def compare_stored(workload, native, cairn):
    def matches(name, key):
        return any(fnmatch.fnmatch(name, pattern) for pattern in workload.list_of(key))

    def kept(tree):
        return {name: entry for name, entry in tree.items() if not matches(name, "volatile")}

    native, cairn = kept(native), kept(cairn)
    for name in native:
        if matches(name, "ignore") and name in cairn:
            native[name] = cairn[name]
    return under_cairn.compare_trees(native, cairn, EXPLICIT_BEFORE_NS)


def verify(workload, work, kind):
    script = workload.path.with_suffix(".verify.sh")
    if not script.exists():
        return []
    outcome = under_cairn.execute(["bash", script], work / kind / "t", workload.timeout)
    if outcome.status == 0 and not outcome.timed_out:
        return []
    return [f"stored by the {kind} run: {script.name}: {outcome}: {(outcome.output + outcome.errors)[-600:]}"]


class Skip(Exception):
    pass


def judge(workload, work, native_only):
    native, native_tree = run(workload, work, "native")
    if native.status == under_cairn.SKIPPED:
        raise Skip(native.output.strip() or "it says so")
    if native.timed_out or (native.status != 0 and workload.settings["output"] != "verdicts"):
        return [f"natively: {native}: {native.errors[-1500:]}"]
    problems = verify(workload, work, "native")
    if native_only or problems:
        print(native.output[-3000:])
        return problems
    cairn, cairn_tree = run(workload, work, "cairn")
    if cairn.timed_out or cairn.status != native.status:
        problems.append(f"natively {native}, under Cairn {cairn}: {cairn.errors[-1500:]}")
    problems += compare_output(workload, native, cairn)
    problems += compare_stored(workload, native_tree, cairn_tree)
    problems += verify(workload, work, "cairn")
    if "lost" in cairn.errors:
        problems.append(f"Cairn complained: {cairn.errors[-500:]}")
    return problems


def check(workload, native_only):
    """True: passed, False: failed, None: skipped."""
    reason = workload.missing()
    if reason:
        print(f"skipped {workload.name}: {reason}")
        return None
    work = under_cairn.work_directory(f"program-{workload.name}")
    began = time.monotonic()
    try:
        problems = judge(workload, work, native_only)
    except Skip as reason:
        print(f"skipped {workload.name}: {reason}")
        under_cairn.remove(work)
        return None
    explained = [p for p in problems for name, pattern in expected_differences()
                 if fnmatch.fnmatch(workload.name, name) and fnmatch.fnmatch(p.split(": ")[0], pattern)]
    for problem in explained:
        print(f"  expected: {problem[:200]}")
    problems = [p for p in problems if p not in explained]
    seconds = time.monotonic() - began
    if not problems:
        print(f"passed {workload.name} ({seconds:.1f} s)", flush=True)
        under_cairn.remove(work)
        return True
    print(f"FAILED {workload.name} ({seconds:.1f} s), kept: {work}")
    for problem in problems[:20]:
        print("  " + problem)
    if len(problems) > 20:
        print(f"  ... and {len(problems) - 20} more")
    sys.stdout.flush()
    return False


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--native", action="store_true")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    paths = [p for p in sorted((HERE / "workloads").glob("*.sh")) if not p.name.endswith(".verify.sh")]
    workloads = {p.name[:-3]: Workload(p) for p in paths}
    if options.list:
        print("\n".join(workloads))
        return 0
    unknown = [name for name in options.names if name not in workloads]
    if unknown:
        print(f"no such workload: {' '.join(unknown)}")
        return 2
    if not options.native and not under_cairn.have_cairn():
        print(f"skipped: {under_cairn.CAIRN} is not built")
        return under_cairn.SKIPPED
    results = {name: check(workloads[name], options.native) for name in options.names or workloads}
    failed = [name for name, passed in results.items() if passed is False]
    if failed:
        print(f"failed: {' '.join(failed)}")
        return 1
    skipped = [name for name, passed in results.items() if passed is None]
    if skipped:
        print(f"not all of them ran; skipped: {' '.join(skipped)}")
    return under_cairn.SKIPPED if skipped else 0


if __name__ == "__main__":
    sys.exit(main())
