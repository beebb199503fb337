#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keeper and service of a node with a durable tier are killed at once, its program goes on alone. What that has made
durable is there after `cairn recover`, which waits for its end, and nothing older comes over it.
"""

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import under_cairn  # noqa: E402
from scenes import need, processes, run_scenes, wait_until  # noqa: E402

BYTES = 300_000
EXIT_NOT_STORED = 74
# A program that says where it is, and goes on at a word of ours.
HEAD = f"""
import fcntl, mmap, os, sys, threading
BYTES = {BYTES}
def stop(word):
    print(word, flush=True)
    sys.stdin.readline()
def notice():
    for _ in range(5):
        threading.Event().wait(0.01)
        os.close(os.open('else', os.O_RDWR | os.O_CREAT))
file = os.open('file', os.O_RDWR | os.O_CREAT, 0o644)
os.write(file, b'1' * BYTES)
os.fsync(file)
"""


class Left:
    """A program whose node is dead."""

    def __init__(self, work, program, options=("--trigger", "on-exit"), before=lambda left: None):
        self.store, self.tier = work / "store", work / "tier"
        self.store.mkdir()
        self.tier.mkdir()
        command = under_cairn.cairn_command([sys.executable, "-c", HEAD + program], self.store,
                                            tiers=[f"{self.tier}:256M:durable"], options=options)
        self.run = subprocess.Popen(command, cwd=self.store, env=under_cairn.clean_environment(), text=True,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.PIPE,
                                    start_new_session=True)
        self.expect("begun")
        before(self)
        service, keeper = processes(f"run-{self.run.pid}")
        os.kill(keeper, signal.SIGSTOP)  # it begins no other service
        for pid in (service, keeper):
            os.kill(pid, signal.SIGKILL)

    def expect(self, word):
        said = self.run.stdout.readline()
        need(said == word + "\n", f"'{said}' instead of '{word}'")

    def go_on(self, word):
        self.run.stdin.write("\n")
        self.run.stdin.flush()
        self.expect(word)

    def forget(self):
        """A later run may have the same number, and is called otherwise where the directory is taken."""
        shutil.rmtree(Path(f"/tmp/cairn-{os.getuid()}") / f"run-{self.run.pid}", ignore_errors=True)

    def end(self):
        _, errors = self.run.communicate("\n", timeout=60)
        self.forget()
        need(self.run.returncode in (0, EXIT_NOT_STORED), f"status {self.run.returncode}: {errors}")

    def kill(self):
        os.killpg(self.run.pid, signal.SIGKILL)
        self.run.communicate(timeout=60)
        self.forget()

    def recover(self):
        return under_cairn.execute([under_cairn.CAIRN, "recover", self.tier], "/", 60)

    def recovered(self, status=0):
        done = self.recover()
        need(done.status == status, f"cairn recover: {done} {done.output} {done.errors}")

    def has_note(self):
        return (self.tier / "cairn-durable" / "programs").exists()

    def is_all(self, digit):
        found = (self.store / "file").read_bytes()
        need(found == digit * BYTES, f"{len(found)} bytes, {found.count(digit)} of them the newest")


def scene_what_it_stores_stays(work):
    left = Left(work, """
os.pwrite(file, b'2' * BYTES, 0)
stop('begun')
os.pwrite(file, b'3' * BYTES, 0)
os.fsync(file)
stop('synced')
""")
    left.go_on("synced")
    left.end()
    for _ in range(2):
        left.recovered()
        left.is_all(b"3")
    need([path.name for path in left.store.iterdir()] == ["file"], "the program has said that the file is whole")


def scene_recovery_waits_for_its_end(work):
    """What has left the tiers is written past the buffers, where the log is not asked."""
    left = Left(work, """
stop('begun')
notice()
os.pwrite(file, b'2' * BYTES, 0)
stop('written')
os.ftruncate(file, BYTES // 2)
os.pwrite(file, b'3' * (BYTES // 2), BYTES // 2)
os.pwrite(file, b'3' * (BYTES // 2), 0)
stop('written again')
os.fsync(file)
stop('synced')
""", options=())
    for word in ("written", "written again", "synced"):
        left.go_on(word)
        refused = left.recover()
        need(refused.status not in (0, EXIT_NOT_STORED) and "still run" in refused.errors, f"{refused}")
        need("(python" in refused.errors, refused.errors)
    left.end()
    left.recovered()
    left.is_all(b"3")


def scene_the_next_node_waits_for_its_end(work):
    left = Left(work, """
stop('begun')
notice()
os.pwrite(file, b'2' * BYTES, 0)
os.fsync(file)
stop('synced')
""")
    left.go_on("synced")
    command = under_cairn.cairn_command(["true"], left.store, tiers=[f"{left.tier}:256M:durable"])
    refused = under_cairn.execute(command, left.store, 60)
    need(refused.status != 0 and "still run" in refused.errors, f"{refused.status} {refused.errors}")
    left.end()
    done = under_cairn.execute(command, left.store, 60)
    need(done.status == 0, f"{done.status} {done.errors}")
    left.is_all(b"2")


def scene_a_node_that_lives_is_no_dead_one(work):
    """Nobody is told to end its programs."""
    def look(left):
        command = under_cairn.cairn_command(["true"], left.store, tiers=[f"{left.tier}:256M:durable"])
        for refused in (left.recover(), under_cairn.execute(command, left.store, 60)):
            need(refused.status == 2 and "in use by another node" in refused.errors, f"{refused} {refused.errors}")

    left = Left(work, "stop('begun')", before=look)
    left.end()


def scene_all_ways_to_make_it_durable_count(work):
    """The file is clean in the tiers and in the log, so nothing is said of it before; and the program is killed."""
    ways = {"fdatasync": "os.fdatasync(file)", "sync": "os.sync()", "no way": "", "mapping": """
with mmap.mmap(file, BYTES) as mapped:
    mapped[:] = b'2' * BYTES
    mapped.flush()"""}
    for name, way in ways.items():
        place = work / name
        place.mkdir()
        left = Left(place, f"""
stop('begun')
notice()
os.pwrite(file, b'2' * BYTES, 0)
{way}
stop('durable')
""", options=(), before=lambda left: wait_until(lambda: (left.store / "file").read_bytes() == b"1" * BYTES, "stored"))
        left.go_on("durable")
        left.kill()
        left.recovered()
        left.is_all(b"1" if name == "no way" else b"2")


def scene_a_program_without_its_first_thread_is_seen(work):
    left = Left(work, """
import ctypes
def go():
    stop('begun')
    notice()
    os.pwrite(file, b'2' * BYTES, 0)
    stop('written')
    os.fsync(file)
    stop('synced')
    os._exit(0)
threading.Thread(target=go).start()
ctypes.CDLL(None).syscall(60, 0)  # exit(2), of this thread alone
""")
    for word in ("written", "synced"):
        left.go_on(word)
        refused = left.recover()
        need("still run" in refused.errors, f"{refused} {refused.errors}")
    left.end()
    left.recovered()
    left.is_all(b"2")


def scene_no_fsync_fails_without_a_reason(work):
    left = Left(work, """
files = [os.open(f'file{number}', os.O_RDWR | os.O_CREAT, 0o644) for number in range(6)]
for each in files:
    os.write(each, b'1' * 1000)
    os.fsync(each)
stop('begun')
failures = []
def go(each):
    for _ in range(20):
        try:
            os.pwrite(each, b'2' * 1000, 0)
            os.fsync(each)
        except OSError as error:
            failures.append(error)
threads = [threading.Thread(target=go, args=(each,)) for each in files]
for thread in threads: thread.start()
for thread in threads: thread.join()
stop(f'{len(failures)} failures')
""")
    left.go_on("0 failures")
    left.end()
    left.recovered()
    for number in range(6):
        need((left.store / f"file{number}").read_bytes() == b"2" * 1000, f"file{number} is as it was synced")


JOURNAL = """
journal = os.open('journal', os.O_RDWR | os.O_CREAT, 0o644)
os.write(journal, b'j' * 5000)
os.fsync(journal)
stop('begun')
"""


def scene_a_file_that_it_removes_stays_away(work):
    """It may be the journal of a database."""
    left = Left(work, JOURNAL + "notice()\nos.unlink('journal')\nstop('removed')")
    left.go_on("removed")
    left.end()
    left.recovered()
    need(not (left.store / "journal").exists(), "it has come back")
    left.is_all(b"1")


def scene_a_file_that_a_command_removes_stays_away(work):
    """The command has no node, and the program is killed before it could say anything."""
    left = Left(work, JOURNAL)
    (left.store / "journal").unlink()
    left.kill()
    left.recovered(EXIT_NOT_STORED)
    need(not (left.store / "journal").exists(), "it has come back")
    saved = [path for path in (left.tier / "cairn-rescued").iterdir() if path.read_bytes() == b"j" * 5000]
    need(len(saved) == 1, "the rescue folder has what was synced of it")
    left.is_all(b"1")


def scene_a_removed_file_that_recovery_has_to_keep_stays_away(work):
    """The rescue folder cannot be made, so the log keeps the file while another node comes and goes in order."""
    left = Left(work, JOURNAL)
    (left.store / "journal").unlink()
    left.kill()
    folder = left.tier / "cairn-rescued"
    folder.write_text("in the way")
    node = under_cairn.cairn_command(["sh", "-c", "echo other >other; sync other"], left.store,
                                     tiers=[f"{left.tier}:256M:durable"])
    for _ in range(2):
        done = under_cairn.execute(node, left.store, 60)
        need(done.status == 0 and "journal: not recovered" in done.errors, f"{done.status} {done.errors}")
    need(left.has_note(), "the log has a file of this start of the machine")
    folder.unlink()
    left.recovered(EXIT_NOT_STORED)
    need(not (left.store / "journal").exists(), "it has come back")
    need(b"j" * 5000 in [path.read_bytes() for path in folder.iterdir()], "the rescue folder lacks it")
    need(not left.has_note(), "the log is empty")


def scene_a_node_with_nothing_in_its_log_leaves_no_note(work):
    left = Left(work, JOURNAL)
    left.kill()
    left.recovered()
    script = """mkdir folder; cd folder; sync .; echo 1 >one; sync one; echo 2 >two; mv two three; sync three; sync .
                rm one; sync .; mv three four; sync ."""
    node = under_cairn.cairn_command(["sh", "-c", script], left.store, tiers=[f"{left.tier}:256M:durable"])
    done = under_cairn.execute(node, left.store, 60)
    need(done.status == 0 and not left.has_note(), f"{done.status} {done.errors}")


def scene_a_rename_keeps_locks(work):
    left = Left(work, """
open('old', 'w').write('old')
new = os.open('new', os.O_RDWR | os.O_CREAT, 0o644)
os.write(new, b'n' * 1000)
os.close(new)
reader = os.open('new', os.O_RDONLY)
fcntl.lockf(reader, fcntl.LOCK_SH)
stop('begun')
os.rename('new', 'old')
stop('renamed')
""")
    left.go_on("renamed")
    with open(left.store / "old", "r+b") as file:
        need(file.read() == b"n" * 1000, "the store has the new content before its name")
        with contextlib.suppress(BlockingIOError):
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            need(False, "the program has lost its lock")
    left.end()


if __name__ == "__main__":
    sys.exit(run_scenes(globals(), sys.argv[1:], contextlib.nullcontext))
