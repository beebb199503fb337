#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a program has synced once and written again is not brought back by `cairn recover` after the death of the node
alone, where the store has the newer bytes.

More is written than the log takes without being asked, and later after the sync than it would.
"""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import under_cairn  # noqa: E402
from scenes import kill_run, need, run_scenes, status_of, wait_until  # noqa: E402

BYTES = 6_000_000
PROGRAM = f"""
import os, time
file = os.open('file', os.O_RDWR | os.O_CREAT, 0o644)
os.write(file, b'1' * {BYTES})
os.fsync(file)
time.sleep(2.1)
os.pwrite(file, b'2' * {BYTES}, 0)
print('written', flush=True)
time.sleep(600)
"""


def started(work, program, options=(), stdin=None):
    """`cairn run` of a program that has said that it has written, its store and its durable tier."""
    store, tier = work / "store", work / "tier"
    store.mkdir()
    tier.mkdir()
    command = under_cairn.cairn_command([sys.executable, "-c", program], store, tiers=[f"{tier}:256M:durable"],
                                        options=options)
    run = subprocess.Popen(command, cwd=store, env=under_cairn.clean_environment(), stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, stdin=stdin, text=True, start_new_session=True)
    need(run.stdout.readline() == "written\n", "the program has written")
    return run, store, tier


def scene_what_the_store_has_stays(work):
    run, store, tier = started(work, PROGRAM)
    node = status_of(f"run-{run.pid}")
    newer = b"2" * BYTES
    wait_until(lambda: (store / "file").read_bytes() == newer, "the store has what was written last")
    kill_run(run, node["service_pid"])
    done = under_cairn.execute([under_cairn.CAIRN, "recover", tier], "/", 60)
    need(done.status == 0, f"cairn recover: {done} {done.output} {done.errors}")
    found = (store / "file").read_bytes()
    need(found == newer, f"recovery brought {found.count(b'1')} old bytes back")


GRACE = """
import os, time
file = os.open('file', os.O_RDWR | os.O_CREAT, 0o644)
os.write(file, b'1' * 65536)
os.fsync(file)
os.write(file, b'2' * 8_000_000)
time.sleep(0.5)
os.pwrite(file, b'3' * 1_000_000, 0)
print('written', flush=True)
time.sleep(600)
"""


def scene_a_file_that_the_log_refuses_is_stored_within_the_grace(work):
    """Its fsync belongs to the store since some of it went there, so the log does not get it whole."""
    run, store, _ = started(work, GRACE, ["--grace", "2"])
    run.terminate()
    errors = run.communicate(timeout=60)[1]
    need(run.returncode == 128 + signal.SIGTERM, f"status {run.returncode}: {errors}")
    stored = (store / "file").read_bytes()
    need(stored == b"3" * 1_000_000 + b"2" * (65536 + 8_000_000 - 1_000_000), "the store has all of it")


if __name__ == "__main__":
    sys.exit(run_scenes(globals(), sys.argv[1:], contextlib.nullcontext))
