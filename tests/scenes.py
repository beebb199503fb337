# SPDX-License-Identifier: Apache-2.0
"""What the scenes of the fault tests share: failures, waits, the misbehaving file system, and how they are run."""

import argparse
import contextlib
import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import under_cairn

EXIT_NOT_STORED = 74


class Failure(Exception):
    pass


def need(condition, what):
    if not condition:
        raise Failure(what)


def wait_until(condition, what, seconds=60, found=None):
    """`found()` tells of what there is instead."""
    end = time.monotonic() + seconds
    while not condition():
        is_late = time.monotonic() >= end
        need(not is_late, f"{what}: not within {seconds} s; {found() if found and is_late else ''}")
        time.sleep(0.02)


def kill_run(run, service):
    """The program, service and keeper of a `cairn run` that leads its own process group, at once."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(service, signal.SIGSTOP)
    os.killpg(run.pid, signal.SIGKILL)
    under_cairn.kill_node(service)
    run.wait()
    wait_until(lambda: not Path(f"/proc/{service}").exists(), "the service is gone")


class FaultyStore:
    """A mounted faulty_store; `behind` is the directory that it shows."""

    def __init__(self, work, program):
        self.rules = work / "rules"
        self.behind, self.path = work / "behind", work / "store"
        self.behind.mkdir()
        self.path.mkdir()
        self.server = subprocess.Popen([program, self.rules, self.behind, self.path], stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        wait_until(lambda: self.is_mounted() or self.server.poll() is not None, "the store is mounted")

    def is_mounted(self):
        return os.path.ismount(self.path)

    def why_not(self):
        return self.server.stderr.read().decode().strip()

    def obey(self, *lines):
        """Atomically, so that no operation reads half of the rules."""
        fresh = self.rules.with_suffix(".new")
        fresh.write_text("".join(line + "\n" for line in lines))
        fresh.rename(self.rules)

    def close(self):
        self.obey()
        subprocess.run(["umount", "-l", self.path], check=False, capture_output=True)
        self.server.terminate()
        self.server.wait(20)


# ---- a run whose standard streams are the files `errors` and `output` of a directory ------------------------


def launch(command, work, store, environment=None):
    """In a session of its own, so that its processes are found by it."""
    with open(work / "errors", "wb") as errors, open(work / "output", "wb") as out:
        return subprocess.Popen(command, cwd=store, env=under_cairn.clean_environment() | (environment or {}),
                                stdin=subprocess.DEVNULL, stdout=out, stderr=errors, start_new_session=True)


def messages(work):
    return (work / "errors").read_text(errors="replace")


def output(work):
    return (work / "output").read_text(errors="replace").split()


def need_status(run, expected, work):
    status = run.wait(120)
    need(status == expected, f"exit status {status}, not {expected}: {output(work)} {messages(work)[-1500:]}")


# ---- its node ----------------------------------------------------------------------------------------------


def ask(*words, timeout=60):
    return under_cairn.execute([under_cairn.CAIRN, *words], "/", timeout)


def status_of(node):
    answer = ask("status", "--node", node, "--json", timeout=20)
    need(answer.status == 0, f"cairn status: {answer} {answer.errors}")
    reply = json.loads(answer.output)
    return reply.get("status", reply)


def processes(node):
    """The service and its keeper."""
    status = status_of(node)
    return status["service_pid"], status["keeper_pid"]


def is_alive(process):
    """Also while a thread of it is in a call of the store."""
    def state(thread):
        try:
            return (thread / "stat").read_text().rsplit(")")[1].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return "Z"  # it has just gone; others may be there
    try:
        return any(state(thread) != "Z" for thread in list(Path(f"/proc/{process}/task").iterdir()))
    except (FileNotFoundError, ProcessLookupError):
        return False


def kept_node(work):
    match = re.search(r"cairn drain --node (\S+)", messages(work))
    need(match, f"no `cairn drain --node NAME` in the messages:\n{messages(work)[-1500:]}")
    return match.group(1)


def kill_what_uses(work):
    """What a scene that has failed leaves behind: the processes that name its directory, or work in it."""
    def is_of_scene(entry):
        try:
            words = (entry / "cmdline").read_bytes().decode(errors="replace")
            return str(work) in words or os.readlink(entry / "cwd").startswith(str(work))
        except OSError:
            return False
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid() and is_of_scene(entry):
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(entry.name), signal.SIGKILL)


# ---- the tables that promise them --------------------------------------------------------------------------


def rows_of(heading):
    """The names that the scenes of a table in docs/semantics.md have. A row may be several: `the store fails, is full`.
    """
    text = (under_cairn.SOURCE / "docs/semantics.md").read_text(encoding="utf-8")
    need(f"#### {heading}\n" in text, f"docs/semantics.md has no table {heading!r}")
    table = re.split(r"^#+ ", text[text.index(f"#### {heading}\n") + 5:], flags=re.M)[0]
    cells = re.findall(r"^\| ([^|]*[^| ]) *\|", table, re.M)
    names = set()
    for cell in cells[1:]:  # the first one is the table's head
        first, *more = cell.split(", ")
        subject = re.split(" (?:is|fails) ?", first)[0]
        names |= {first, *(f"{subject} {part}" if part.startswith("is ") else part for part in more)}
    return {re.sub(r"\W+", "_", name) for name in names}


def missing_partners(heading, names):
    """The rows without a scene, and the scenes without a row. A row of who dies may leave that word out."""
    def bare(all_names):
        return {re.sub("_dies?$", "", name) for name in all_names}
    return sorted(bare(rows_of(heading)) ^ bare(names))


# ---- all of them -------------------------------------------------------------------------------------------


def run_scenes_of_a_store(functions, prepare, heading=None):
    """The main function of a test that has the program of the misbehaving file system as --store, and scenes after it.
    prepare(work, program) is a context manager as that of run_scenes()."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", required=True)
    parser.add_argument("scenes", nargs="*")
    options = parser.parse_args()
    if not under_cairn.have_cairn():
        print(f"skipped: {under_cairn.CAIRN} is not built")
        return under_cairn.SKIPPED
    return run_scenes(functions, options.scenes, lambda work: prepare(work, options.store), heading)


def run_scenes(functions, wanted, prepare, heading=None):
    """Calls the functions called scene_NAME among `functions` (a module's globals()), or those that are wanted.

    prepare(work) is a context manager of what a scene gets, in a directory of its own; it raises NotHere where the
    machine cannot have it. `heading`: of the table in docs/semantics.md whose rows have the names of the scenes, where
    one has. Returns the exit status: 1 where a scene failed, 77 where none can run.
    """
    known = {name.removeprefix("scene_"): scene for name, scene in functions.items() if name.startswith("scene_")}
    failed = missing_partners(heading, known) if heading else []
    if failed:
        print(f"FAILED: rows of {heading!r} without a scene, or scenes without a row: {failed}", flush=True)
    for name in wanted or known:
        work = under_cairn.work_directory(f"faults-{name}")
        began = time.monotonic()
        try:
            with prepare(work) as stage:
                known[name](stage)
            print(f"passed {name} ({time.monotonic() - began:.1f} s)", flush=True)
            under_cairn.remove(work)
        except NotHere as reason:
            print(f"skipped: {reason}")
            under_cairn.remove(work)
            return 1 if failed else under_cairn.SKIPPED
        except PartNotHere as reason:
            print(f"skipped {name}: {reason}", flush=True)
            under_cairn.remove(work)
        except (Failure, OSError, ValueError, KeyError, AttributeError, subprocess.TimeoutExpired) as problem:
            print(f"FAILED {name}, kept {work}\n  {problem}", flush=True)
            kill_what_uses(work)
            failed.append(name)
    return 1 if failed else 0


class NotHere(Exception):
    pass


class PartNotHere(Exception):
    """The machine cannot have what this one scene needs."""


def mounted(work, program):
    """A FaultyStore, or NotHere where FUSE may not be mounted."""
    store = FaultyStore(work, program)
    if not store.is_mounted():
        raise NotHere(f"FUSE cannot be mounted here: {store.why_not()}")
    return store
