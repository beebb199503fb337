#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A private node ends by itself when `cairn run` is gone without having ended it, in whatever phase that was.

Each scene starts `cairn run` as a process group and kills the whole group; the service, which has a session of its
own, must end within a bound. The node of `cairn up` must not.
"""

import os
import signal
import subprocess
import sys

from neighbour import CAIRN, Place, check, play, wait_until

END_SECONDS = 20


def kill_group(process, gently=False):
    if gently:
        os.killpg(process.pid, signal.SIGTERM)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def start_run(place, *program):
    return place.start("run", "--no-report", "--ram", "16M", "--buffer", str(place.work), "--", *program,
                       start_new_session=True)


def node_file(place, name):
    return any(place.root.glob("run-*/" + name))


def expect_end(place, when):
    check(wait_until(lambda: not place.processes(), END_SECONDS), f"killed {when}: still there: {place.processes()}")


def launcher_killed_at_every_step_of_the_start():
    for step in ("config.yaml", "node.log", "node.pid", "client.sock", "control.sock"):
        for gently in (False, True):
            with Place("left-start") as place:
                process = start_run(place, "sleep", "1000")
                check(wait_until(lambda s=step, p=place: node_file(p, s), 20, 0.0005), f"{step} never appears")
                kill_group(process, gently)
                expect_end(place, f"when {step} was there")


def launcher_killed_at_any_moment():
    with Place("left-any") as place:
        for step in range(24):
            process = start_run(place, "sh", "-c", "echo x >file; cat file >copy")
            try:
                process.wait(timeout=0.006 * step)
            except subprocess.TimeoutExpired:
                pass
            try:
                kill_group(process, step % 2 == 1)
            except ProcessLookupError:
                process.wait()
        expect_end(place, "at some moment")


def launcher_stopped_between_ready_and_the_run():
    """The one moment that no file shows: the service is ready, and the launcher has not said that it runs anything."""
    with Place("left-ready") as place:
        process = start_run(place, "sleep", "1000")
        check(wait_until(lambda: node_file(place, "node.pid"), 20, 0.0005), "the service does not start")
        os.kill(process.pid, signal.SIGSTOP)
        check(wait_until(lambda: place.services() and node_file(place, "control.sock"), 20), "no service")
        kill_group(process)
        expect_end(place, "before the run began")


def clients_killed_with_the_launcher():
    with Place("left-clients") as place:
        process = start_run(place, "sh", "-c", "exec 5>data; echo line >&5; touch up; while echo line >&5; do :; done")
        check(wait_until(lambda: (place.work / "up").exists(), 20), "the program does not start")
        kill_group(process, gently=True)
        expect_end(place, "while its program wrote")
        text = (place.work / "data").read_bytes()
        check(text and set(text.split(b"\n")[:-1]) == {b"line"}, "what was written is not stored")


def programs_that_outlive_the_launcher_keep_the_node():
    with Place("left-survivor") as place:
        process = start_run(place, "sh", "-c",
                            "setsid sh -c 'echo one >kept; touch up; while [ ! -e go ]; do sleep 0.02; done;"
                            " cat kept >copy; touch done' & sleep 1000")
        check(wait_until(lambda: (place.work / "up").exists(), 20), "the program does not start")
        kill_group(process)
        check(place.services(), "the service ended under a program that lives")
        (place.work / "go").touch()
        check(wait_until(lambda: (place.work / "done").exists(), 20), "the program that was left does not end")
        expect_end(place, "before its last program")
        check((place.work / "copy").read_text() == "one\n", "the last program's file is not stored")


def a_name_can_be_used_again_after_any_death():
    with Place("left-name") as place:
        left = place.root / "again"
        for folder in ("heat", "scratch/1", "records", "rescue/again-1"):
            (left / folder).mkdir(parents=True)
        (left / "heat/1-2-3.heat").write_text("worthless")
        (left / "rescue/again-1/1").write_text("the only copy")
        for name in ("node.log", "mine"):
            (left / name).write_text("what happened")
        refused = place.cairn("up", "--name", "again", "--ram", "16M")
        check(refused.returncode != 0 and b"mine" in refused.stderr, f"no word of what is in the way: {refused}")
        check((left / "node.log").exists(), "the log of the dead node is gone, and no node in its place")
        (left / "mine").unlink()
        for turn in range(2):
            up = place.cairn("up", "--name", "again", "--ram", "16M")
            check(up.returncode == 0, f"the name cannot be used again: {up}")
            check(place.cairn("down", "--node", "again").returncode == 0, "cairn down fails")
            check(not left.exists(), f"left after `down`: {list(left.glob('*'))}")
        saved = place.root / "again.rescue/again-1/1"
        check(saved.read_text() == "the only copy", "what a rescue has saved is gone")


def a_node_that_was_asked_for_stays():
    with Place("left-up") as place:
        check(place.cairn("up", "--name", "kept", "--ram", "16M").returncode == 0, "cairn up fails")
        process = place.start("run", "--no-report", "--node", "kept", "--", "sleep", "1000", start_new_session=True)
        check(wait_until(lambda: b'"sleep' in place.cairn("status", "--node", "kept", "--json").stdout, 20),
              "the run does not begin")
        kill_group(process)
        check(place.cairn("status", "--node", "kept").returncode == 0, "the node has gone with a run")
        check(place.cairn("down", "--node", "kept").returncode == 0, "cairn down fails")


if __name__ == "__main__":
    sys.exit(play([launcher_killed_at_every_step_of_the_start, launcher_killed_at_any_moment,
                   launcher_stopped_between_ready_and_the_run, clients_killed_with_the_launcher,
                   a_name_can_be_used_again_after_any_death,
                   programs_that_outlive_the_launcher_keep_the_node, a_node_that_was_asked_for_stays]))
