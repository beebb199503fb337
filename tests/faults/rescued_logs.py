#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A rescue where a tier is durable: what its log has of the stored and the saved files is void afterwards, and what it
has of other files is not.

    rescued_logs.py [SCENE...]

Where the store is to refuse, it is a small tmpfs; without the right to mount that scene is skipped.
"""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import under_cairn  # noqa: E402
from rescues import EXIT_NOT_STORED, Run, kill_both, mount, play, wait_until  # noqa: E402

# The durable log has the first content; the second is newer, and in memory alone.
LOGGED = textwrap.dedent("""
    import os, sys
    file = os.open('logged', os.O_RDWR | os.O_CREAT, 0o644)
    os.pwrite(file, b'old' * 30000, 0)
    os.fsync(file)
    os.pwrite(file, b'new' * 30000, 0)
    print('written', flush=True)
    sys.stdin.readline()
    os.fsync(file)
    print('done', flush=True)
    """)


def end_after_a_rescue(run, work):
    """The program that has written goes on once a rescue has stored everything, and ends well."""
    run.expect("written")
    node = run.node()
    run.kill_services(3)
    wait_until(lambda: (node / "stored").exists() or not node.exists(), f"no rescue; {work}")
    run.say()
    run.expect("done")
    status, errors = run.end()
    assert status == 0, f"status {status}: {errors[-1500:]}"


def rescued_past_a_log(work):
    """A rescue has stored what is newer than the durable log: recovery does not bring the old bytes back."""
    tier, store = work / "tier", work / "store"
    tier.mkdir(mode=0o700)
    store.mkdir()
    run = Run(work, store, program=LOGGED, options=["--tier", f"{tier}:128M:durable"])
    end_after_a_rescue(run, work)
    recovered = subprocess.run([under_cairn.CAIRN, "recover", tier], env=run.environment, capture_output=True,
                               text=True)
    assert recovered.returncode == 0, recovered.stderr
    assert (store / "logged").read_bytes() == b"new" * 30000, f"recovery brought old bytes back; {work}"


def saved_past_a_log(work):
    """The store is full: what was fsynced lies in the durable log, and what is newer in the rescue directory. In
    whatever order `cairn rescue`, `cairn recover` and another node come, the newer bytes are there in the end."""
    for order in ("rescue, recover", "recover, rescue", "node, rescue"):
        place = work / order[:6]
        tier, store = place / "tier", place / "store"
        tier.mkdir(mode=0o700, parents=True)
        store.mkdir()
        if not mount("-t", "tmpfs", "-o", "size=1m", "tmpfs", store):
            print("skipped: no right to mount; ", end="")
            return
        try:
            saved = save_past_a_log(place, tier, store)
            node = ["run", "--no-report", "--buffer", store, "--tier", f"{tier}:128M:durable", "--", "true"]
            commands = {"rescue": ["rescue", saved], "recover": ["recover", tier], "node": node}
            for name in order.split(", "):
                done = subprocess.run([under_cairn.CAIRN, *commands[name]], cwd=store, capture_output=True, text=True,
                                      env=under_cairn.clean_environment({"CAIRN_RUN_ROOT": str(place / "run")}),
                                      check=False)
                assert done.returncode == 0, f"{name} of {order}: {done.returncode}: {done.stderr}; {place}"
            assert (store / "logged").read_bytes() == b"new" * 30000, f"{order}: other bytes; {place}"
        finally:
            subprocess.run(["umount", "-l", store], check=False)


def save_past_a_log(place, tier, store):
    """The rescue directory of LOGGED on a full store, which has room again afterwards."""
    run = Run(place, store, program=LOGGED, options=["--tier", f"{tier}:128M:durable"])
    run.expect("written")
    (store / "filler").write_bytes(b"f" * (1020 << 10))
    node = run.node()
    run.kill_services(3)
    wait_until(lambda: (node / "rescued").exists(), f"no rescue; {place}")
    os.killpg(run.process.pid, signal.SIGKILL)
    run.process.communicate()
    (store / "filler").unlink()
    return Path((node / "rescued").read_text().splitlines()[0])


def a_log_that_cannot_be_told(work):
    """The log is damaged: no service can start on it, and the rescue says that it may bring older bytes back."""
    tier, store = work / "tier", work / "store"
    tier.mkdir(mode=0o700)
    store.mkdir()
    run = Run(work, store, program=LOGGED, options=["--tier", f"{tier}:128M:durable"])
    run.expect("written")
    (tier / "cairn-durable/superblock").write_bytes(b"damaged" * 1000)
    run.kill_services(1)
    run.say()
    run.expect("done")
    status, errors = run.end()
    assert status == 0, f"status {status}: {errors[-1500:]}"
    assert f"the durable tier in {tier} could not be told" in errors, errors
    assert (store / "logged").read_bytes() == b"new" * 30000


def log_of_a_dead_node(tier, file, text):
    """The tier's log owes the file these bytes, from its beginning on."""
    subprocess.run([under_cairn.BUILD / "tests/durable_write_log", tier, file, "0", text], check=True)


def owed_from_before(work):
    """The log owes a full store bytes from an earlier death of the machine. A rescue knows nothing of them, and they
    are still there when the store has room again."""
    tier, store, full = work / "tier", work / "store", work / "full"
    tier.mkdir(mode=0o700)
    store.mkdir()
    full.mkdir()
    if not mount("-t", "tmpfs", "-o", "size=1m", "tmpfs", full):
        print("skipped: no right to mount; ", end="")
        return
    try:
        (full / "owed").touch()
        (full / "filler").write_bytes(b"f" * (1020 << 10))
        log_of_a_dead_node(tier, full / "owed", "owed" * 25000)
        run = Run(work, store, options=["--tier", f"{tier}:128M:durable"])
        end_after_a_rescue(run, work)
        (full / "filler").unlink()
        recovered = subprocess.run([under_cairn.CAIRN, "recover", tier], env=run.environment, capture_output=True,
                                   text=True, check=False)
        assert recovered.returncode == 0, recovered.stderr
        assert (full / "owed").read_bytes() == b"owed" * 25000, f"forgotten: {recovered.stderr}; {work}"
    finally:
        subprocess.run(["umount", "-l", full], check=False)


# The log has all of the journal, and of nothing else.
JOURNAL = textwrap.dedent("""
    import os, sys
    file = os.open('journal', os.O_RDWR | os.O_CREAT, 0o644)
    os.write(file, b'j' * 5000)
    os.fsync(file)
    print('written', flush=True)
    sys.stdin.readline()
    """)


def removed_before(work):
    """A node has died, a command has removed its file, and recovery could not save that elsewhere. After a rescue of
    the next node the log still has it, and it must not come back."""
    tier, store, first = work / "tier", work / "store", work / "first"
    tier.mkdir(mode=0o700)
    store.mkdir()
    first.mkdir()
    options = ["--tier", f"{tier}:128M:durable"]
    died = Run(first, store, program=JOURNAL, options=options)
    died.expect("written")
    kill_both(died)
    os.killpg(died.process.pid, signal.SIGKILL)
    died.process.communicate()
    (store / "journal").unlink()
    (tier / "cairn-rescued").write_text("in the way")
    run = Run(work, store, program=LOGGED, options=options)
    end_after_a_rescue(run, work)
    (tier / "cairn-rescued").unlink()
    recovered = subprocess.run([under_cairn.CAIRN, "recover", tier], env=run.environment, capture_output=True,
                               text=True, check=False)
    assert recovered.returncode == EXIT_NOT_STORED, f"{recovered.returncode}: {recovered.stderr}; {work}"
    assert not (store / "journal").exists(), f"it has come back: {recovered.stderr}; {work}"
    assert (store / "logged").read_bytes() == b"new" * 30000, f"recovery brought old bytes back; {work}"


def both_die_past_a_log(work):
    """Keeper and service die: the run names the command that brings to the store what the log has."""
    tier, store = work / "tier", work / "store"
    tier.mkdir(mode=0o700)
    store.mkdir()
    run = Run(work, store, program=LOGGED, options=["--tier", f"{tier}:128M:durable"])
    run.expect("written")
    kill_both(run)
    run.say()
    status, errors = run.end()
    assert status == EXIT_NOT_STORED and f"`cairn recover {tier}`" in errors, f"status {status}: {errors[-1500:]}"


SCENES = [rescued_past_a_log, saved_past_a_log, a_log_that_cannot_be_told, owed_from_before,
          removed_before, both_die_past_a_log]


if __name__ == "__main__":
    sys.exit(play(SCENES, __doc__))
