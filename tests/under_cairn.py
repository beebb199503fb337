# SPDX-License-Identifier: Apache-2.0
"""Runs a command natively or under Cairn, and reads back what is stored afterwards.

Shared by the suites under tests/. The build is found in $CAIRN_BUILD (ctest sets it), else
build/release; work directories lie below $CAIRN_TEST_DIRECTORY, else build/suites, which is on the
file system of the sources (a tmpfs would hide what a real backing store does).
"""

import contextlib
import functools
import hashlib
import os
import select
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from pathlib import Path

SOURCE = Path(os.environ.get("CAIRN_SOURCE", Path(__file__).resolve().parent.parent))
BUILD = Path(os.environ.get("CAIRN_BUILD", SOURCE / "build/release"))
CAIRN = Path(os.environ.get("CAIRN_PROGRAM", BUILD / "bin/cairn"))
TOOLS = SOURCE / "build/tools"
DEATH_SECONDS = 60  # nothing takes so long to die of SIGKILL
SKIPPED = 77  # ctest's SKIP_RETURN_CODE


def have_cairn():
    return os.access(CAIRN, os.X_OK)


def suites_directory():
    return Path(os.environ.get("CAIRN_TEST_DIRECTORY", SOURCE / "build/suites"))


def work_directory(name):
    """A fresh directory; the caller removes it when the test passed."""
    base = suites_directory()
    base.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix=name + "-", dir=base))


def remove(directory):
    shutil.rmtree(directory, ignore_errors=True)


def strike_node(service):
    """Keeper and service get SIGKILL: nobody will be left who would go on with what the node had."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(os.getpgid(service), signal.SIGKILL)


def kill_node(service):
    """Returns when all threads of keeper and service have ended: programs go on alone only then, and another node may
    have the name. The first thread may be a zombie while others still hold the lock of the node's directory: its state
    in /proc says too little."""
    living = []
    try:
        with contextlib.suppress(ProcessLookupError):
            for process in processes_of(os.getpgid(service)):
                with contextlib.suppress(ProcessLookupError):
                    living.append(os.pidfd_open(int(process)))
        strike_node(service)
        end = time.monotonic() + DEATH_SECONDS
        while len(select.select(living, [], [], 0)[0]) < len(living):
            assert time.monotonic() < end, "the node outlives SIGKILL"
            time.sleep(0.001)
    finally:
        for process in living:
            os.close(process)


def processes_of(group):
    return subprocess.run(["pgrep", "-g", str(group)], capture_output=True, text=True, check=False).stdout.split()


def clean_environment(extra=None):
    """The environment without what an outer run of Cairn would have left in it. No test knows what others read."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("CAIRN_")}
    environment.update({"LC_ALL": "C.UTF-8", "TZ": "UTC", "CAIRN_PREFETCH_REMEMBER": "none",
                        "XDG_STATE_HOME": str(suites_directory() / "state")})
    environment.update(extra or {})
    return environment


def cairn_command(command, managed, ram="64M", tiers=(), options=()):
    line = [str(CAIRN), "run", "--no-report", "--ram", ram, "--buffer", str(managed)]
    for tier in tiers:
        line += ["--tier", tier]
    return line + list(options) + ["--"] + [str(word) for word in command]


def judged_by_speed(scene):
    """A scene that judges how far the node is ahead of a program. Where others take the processors away, it may be
    late once or twice; what does not work is late each time."""
    @functools.wraps(scene)
    def patient():
        for left in (2, 1, 0):
            try:
                scene()
                return
            except AssertionError as problem:
                if not left:
                    raise
                print(f"late, again: {scene.__name__}: {problem}", flush=True)
    return patient


class Outcome:
    """Exit status and output of one command; `timed_out` when it had to be killed."""

    def __init__(self, status, output, errors, timed_out):
        self.status, self.output, self.errors, self.timed_out = status, output, errors, timed_out

    def __str__(self):
        if self.timed_out:
            return "timed out"
        return f"exit status {self.status}"


def execute(command, directory, timeout, environment=None, stdin=None):
    """Runs a command in its own process group, so that a timeout leaves nothing behind."""
    process = subprocess.Popen(
        [str(word) for word in command], cwd=directory, env=environment or clean_environment(),
        stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    timed_out = False
    try:
        output, errors = process.communicate(stdin, timeout=timeout)
    except subprocess.TimeoutExpired:
        timed_out = True
        os.killpg(process.pid, signal.SIGKILL)
        output, errors = process.communicate()
    return Outcome(process.returncode, output.decode(errors="replace"),
                   errors.decode(errors="replace"), timed_out)


class Entry:
    """One name of a tree as it is stored: what kind, how big, which bytes, which times."""

    def __init__(self, path):
        status = path.lstat()
        self.inode = status.st_ino
        self.mode = status.st_mode
        self.links = 0 if stat.S_ISDIR(status.st_mode) else status.st_nlink
        self.mtime_ns = status.st_mtime_ns
        self.size = status.st_size if stat.S_ISREG(status.st_mode) else 0
        self.digest = ""
        if stat.S_ISREG(status.st_mode):
            self.digest = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        elif stat.S_ISLNK(status.st_mode):
            self.digest = os.readlink(path)

    def describe(self):
        return f"mode={self.mode:o} links={self.links} size={self.size} {self.digest}"


def judge_cases(name, cases, run_case):
    """Goes through the cases of a suite: `run_case(case, work)` answers the problem, or None. Returns: the exit status;
    what a suite without problems has written is removed."""
    if not have_cairn():
        print(f"skipped: {CAIRN} is not built")
        return SKIPPED
    work = work_directory(name)
    problems = 0
    for case in cases:
        problem = run_case(case, work)
        print(f"{case}: {problem or 'as natively'}", flush=True)
        problems += problem is not None
    if problems == 0:
        remove(work)
    return 1 if problems else 0


def read_tree(directory):
    """All names below a directory, with their entries."""
    directory = Path(directory)
    tree = {}
    for folder, folders, files in os.walk(directory):
        for name in folders + files:
            path = Path(folder) / name
            tree[str(path.relative_to(directory))] = Entry(path)
    return tree


def compare_trees(native, cairn, explicit_before_ns=0, loose=frozenset()):
    """Differences as lines. Times before `explicit_before_ns` were set by the program and must be
    exact; names in `loose` are not compared in time."""
    lines = []
    for name in sorted(set(native) | set(cairn)):
        a, b = native.get(name), cairn.get(name)
        if a is None or b is None:
            lines.append(f"{name}: only {'under Cairn' if a is None else 'natively'}")
            continue
        if a.describe() != b.describe():
            lines.append(f"{name}: native {a.describe()}; under Cairn {b.describe()}")
        if name in loose or stat.S_ISDIR(a.mode):
            continue
        set_by_program = a.mtime_ns < explicit_before_ns or b.mtime_ns < explicit_before_ns
        if set_by_program and a.mtime_ns != b.mtime_ns:
            lines.append(f"{name}: mtime native {a.mtime_ns}; under Cairn {b.mtime_ns}")
    return lines
