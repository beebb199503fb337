#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A node whose files are removed under it makes them again, so that it can be told to store and to end; where it
cannot, it ends by itself when it is not used and everything is stored."""

import os
import shutil
import sys

from neighbour import Place, check, play, wait_until


def up(place):
    started = place.cairn("up", "--name", "cleaned", "--ram", "16M", "--buffer", str(place.work))
    check(started.returncode == 0, f"cairn up fails: {started.stderr.decode()}")


def answers(place):
    return place.cairn("status", "--node", "cleaned").returncode == 0


def serves(place, name):
    run = place.cairn("run", "--no-report", "--node", "cleaned", "--", "sh", "-c", f"echo {name} >{name}; cat {name}")
    return run.stdout == f"{name}\n".encode()


def removed_directory_is_made_again():
    with Place("removed-all") as place:
        up(place)
        shutil.rmtree(place.root / "cleaned", ignore_errors=True)
        check(wait_until(lambda: answers(place), 20, 0.05), "the node cannot be reached any more")
        check(serves(place, "after"), "the node does not serve")
        log = (place.root / "cleaned/node.log").read_text()
        check("made again" in log, f"the log does not say it: {log}")
        config = (place.root / "cleaned/config.yaml").read_text()
        check(str(place.work) in config, "the configuration is not there again")
        again = place.cairn("up", "--name", "cleaned")
        check(again.returncode != 0, "a second node of the name was started")
        check(place.cairn("down", "--node", "cleaned").returncode == 0, "cairn down fails")
        check(not place.services(), "the service is still there")


def removed_sockets_are_made_again():
    with Place("removed-sockets") as place:
        up(place)
        for name in ("client.sock", "control.sock"):
            (place.root / "cleaned" / name).unlink()
            check(wait_until(lambda: answers(place), 20, 0.05), f"{name} is not there again")
        check(serves(place, "after"), "the node does not serve")
        check(place.cairn("down", "--node", "cleaned").returncode == 0, "cairn down fails")


def a_whole_run_root_that_is_removed_is_made_again():
    with Place("removed-root") as place:
        up(place)
        shutil.rmtree(place.root, ignore_errors=True)
        check(wait_until(lambda: answers(place), 20, 0.05), "the node cannot be reached any more")
        check(place.cairn("down", "--node", "cleaned").returncode == 0, "cairn down fails")


def put_a_file_in_its_place(directory):
    """Removes a directory that the node makes again; False when it was faster."""
    try:
        shutil.rmtree(directory)
        directory.write_text("not a directory any more")
    except OSError:
        return False
    return True


def a_node_that_nobody_can_reach_ends_when_all_is_stored():
    with Place("removed-for-good") as place:
        up(place)
        worker = place.start("run", "--no-report", "--node", "cleaned", "--", "sh", "-c",
                             "exec 5>data; echo line >&5; touch up; while [ ! -e go ]; do sleep 0.02; done")
        check(wait_until(lambda: (place.work / "up").exists(), 20), "the program does not start")
        check(wait_until(lambda: put_a_file_in_its_place(place.root), 20, 0), "the node is always faster")
        check(place.services(), "the service ended under a program that lives")
        (place.work / "go").touch()
        worker.wait(timeout=60)
        check(wait_until(lambda: not place.services(), 60, 0.05), "the service stays where nobody can reach it")
        check((place.work / "data").read_text() == "line\n", "what was written is not stored")
        os.unlink(place.root)


if __name__ == "__main__":
    sys.exit(play([removed_directory_is_made_again, removed_sockets_are_made_again,
                   a_whole_run_root_that_is_removed_is_made_again,
                   a_node_that_nobody_can_reach_ends_when_all_is_stored]))
