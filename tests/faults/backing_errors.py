#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Errors of the backing store: data are kept, fsync reports to the program, the end of the run says what is
not stored and how to retry, and after the repair everything gets there.

    backing_errors.py [SCENE ...]

The store is a small tmpfs or a file system on a loop device that runs out of room; without the right to mount
the test is skipped.
"""

import json
import os
import re
import subprocess
import sys
import textwrap
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import under_cairn  # noqa: E402
from scenes import EXIT_NOT_STORED, Failure, need  # noqa: E402


def shell(*words, check=True):
    result = subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=60)
    if check and result.returncode:
        raise Failure(f"{' '.join(map(str, words))}: {result.stderr.strip()}")
    return result


class SmallStore:
    """A tmpfs of a given size, mounted for one test."""

    def __init__(self, work, megabytes):
        self.path = work / "store"
        self.path.mkdir()
        shell("mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", self.path)

    def grow(self, megabytes):
        shell("mount", "-o", f"remount,size={megabytes}m", self.path)

    def close(self):
        shell("umount", "-l", self.path, check=False)


def run_program(work, store, program, timeout=60, options=()):
    script = work / "program.py"
    script.write_text(textwrap.dedent(program))
    command = under_cairn.cairn_command([sys.executable, script], store, ram="64M", options=options)
    return under_cairn.execute(command, store, timeout)


def kept_node(outcome):
    """The name of the node that the message of the end of the run tells to drain."""
    match = re.search(r"cairn drain --node (\S+)", outcome.errors)
    need(match, f"no `cairn drain --node NAME` in the messages:\n{outcome.errors[-1500:]}")
    return match.group(1).rstrip(".`'\",")


def drain_and_end(node):
    result = under_cairn.execute([under_cairn.CAIRN, "drain", "--node", node], "/", 60)
    need(result.status == 0, f"drain after the repair: {result} {result.errors[-800:]}")
    under_cairn.execute([under_cairn.CAIRN, "down", node], "/", 30)
    under_cairn.execute([under_cairn.CAIRN, "down", "--node", node], "/", 30)


def pattern(size, seed):
    return bytes((i * seed + i // 251) & 0xFF for i in range(4096)) * (size // 4096)


def test_full(work):
    """A program that checks fsync hears ENOSPC, makes room and goes on: nothing is lost."""
    store = SmallStore(work, 8)
    try:
        outcome = run_program(work, store.path, """
            import errno, os
            block = bytes((i * 3 + i // 251) & 0xFF for i in range(4096)) * 256
            with open('filler', 'wb') as f:
                f.write(block * 4); f.flush(); os.fsync(f.fileno())
            fd = os.open('data', os.O_RDWR | os.O_CREAT, 0o644)
            for _ in range(6): os.write(fd, block)
            try:
                os.fsync(fd); print('fsync said nothing')
            except OSError as error: print('fsync', errno.errorcode[error.errno])
            print('readable', os.pread(fd, 1 << 20, 5 << 20) == block)
            os.unlink('filler')
            for attempt in range(50):
                try: os.fsync(fd); print('stored'); break
                except OSError as error: last = errno.errorcode[error.errno]
                import time; time.sleep(0.1)
            else: print('never stored', last)
            os.close(fd)
            """)
        need(outcome.output.split("\n")[:3] == ["fsync ENOSPC", "readable True", "stored"],
             f"program said {outcome.output!r}; {outcome.errors[-800:]}")
        need(outcome.status == 0, f"run: {outcome} {outcome.errors[-800:]}")
        need((store.path / "data").read_bytes() == pattern(6 << 20, 3), "what is stored differs")
    finally:
        store.close()


def test_full_unnoticed(work):
    """A program that never looks still ends with 74, the list, kept data, and a way to store them."""
    store = SmallStore(work, 8)
    try:
        outcome = run_program(work, store.path, """
            block = bytes((i * 5 + i // 251) & 0xFF for i in range(4096)) * 256
            import time
            with open('small', 'wb') as f: f.write(b'fits')
            time.sleep(1.5)   # in the background it gets there first
            with open('big one', 'wb') as f:
                for _ in range(20): f.write(block)
            """)
        need(outcome.status == EXIT_NOT_STORED, f"exit status {outcome.status}, not 74: {outcome.errors[-800:]}")
        need("big one" in outcome.errors, f"the file is not named: {outcome.errors[-800:]}")
        need((store.path / "small").read_bytes() == b"fits", "the file that fits is not stored")
        node = kept_node(outcome)
        status = under_cairn.execute([under_cairn.CAIRN, "status", "--node", node, "--json"], "/", 20)
        report = json.loads(status.output)
        names = [entry["path"] for entry in report.get("status", report)["unstored"]]
        need(any(name.endswith("big one") for name in names), f"status --json lists {names}")
        store.grow(64)
        drain_and_end(node)
        need((store.path / "big one").read_bytes() == pattern(20 << 20, 5), "what is stored differs after the drain")
    finally:
        store.close()


def test_drain_of_a_node_that_has_ended(work):
    """Who follows the message of the end of the run late finds a node that has stored everything and ended."""
    store = SmallStore(work, 8)
    try:
        outcome = run_program(work, store.path, """
            block = bytes((i * 5 + i // 251) & 0xFF for i in range(4096)) * 256
            with open('big one', 'wb') as f:
                for _ in range(20): f.write(block)
            """)
        need(outcome.status == EXIT_NOT_STORED, f"exit status {outcome.status}, not 74: {outcome.errors[-800:]}")
        node = kept_node(outcome)
        store.grow(64)
        end = time.monotonic() + 30
        while under_cairn.execute([under_cairn.CAIRN, "status", "--node", node], "/", 20).status == 0:
            need(time.monotonic() < end, "the node does not end although it could store everything")
            time.sleep(0.1)
        late = under_cairn.execute([under_cairn.CAIRN, "drain", "--node", node], "/", 20)
        need(late.status == 0 and "everything is stored" in late.output + late.errors,
             f"drain says {late} {late.output} {late.errors}")
        need((store.path / "big one").read_bytes() == pattern(20 << 20, 5), "what is stored differs")
    finally:
        store.close()


def test_deleted_files_give_their_room_back(work):
    """What was stored and then deleted, by the program or by others, takes no room of the store: at once where it
    is wanted for something else, soon where it is not. No fsync comes in between: what is closed without one stays
    to be made durable at the end of the run, and the node keeps a way to do that."""
    store = SmallStore(work, 12)
    try:
        outcome = run_program(work, store.path, """
            import os, subprocess, time
            block = bytes((i * 3 + i // 251) & 0xFF for i in range(4096)) * 256
            def write(name, count):
                with open(name, 'wb') as f:
                    for _ in range(count): f.write(block)
            def free(): return os.statvfs('.').f_bfree * os.statvfs('.').f_bsize >> 20
            def wait_for(condition):
                end = time.monotonic() + 20
                while not condition() and time.monotonic() < end: time.sleep(0.01)
                return condition()
            write('first', 8)
            print('stored', wait_for(lambda: free() <= 4))
            time.sleep(0.5)   # its descriptor is given up
            os.unlink('first')
            write('second', 8)
            fd = os.open('second', os.O_RDWR)
            os.fsync(fd); os.close(fd)
            write('third', 3)
            print('stored', wait_for(lambda: free() <= 1))
            time.sleep(0.5)
            subprocess.run(['rm', 'third'], check=True, env={})
            print('free', wait_for(lambda: free() >= 4))
            """)
        need(outcome.output.split("\n")[:3] == ["stored True", "stored True", "free True"],
             f"said {outcome.output!r} {outcome.errors[-800:]}")
        need(outcome.status == 0, f"run: {outcome} {outcome.errors[-800:]}")
        need((store.path / "second").read_bytes() == pattern(8 << 20, 3), "the stored file differs")
    finally:
        store.close()


def test_every_description(work):
    """While the store fails, fsync and close of every open description say so; once it is stored, none does."""
    store = SmallStore(work, 4)
    try:
        outcome = run_program(work, store.path, """
            import errno, os, time
            block = b'x' * (1 << 20)
            a = os.open('data', os.O_RDWR | os.O_CREAT, 0o644)
            b = os.open('data', os.O_RDWR)
            c = os.open('data', os.O_RDWR)
            for _ in range(8): os.write(a, block)
            time.sleep(2)   # the flusher meets the error
            def ask(call, fd):
                try: call(fd); return 'ok'
                except OSError as error: return errno.errorcode[error.errno]
            print(ask(os.fsync, a), ask(os.fsync, b), ask(os.close, c))
            os.ftruncate(a, 1 << 20)   # and now nothing is left that could fail
            print(ask(os.fsync, a), ask(os.fsync, b), ask(os.close, a), ask(os.close, b))
            """)
        need(outcome.output.split("\n")[:2] == ["ENOSPC ENOSPC ENOSPC", "ok ok ok ok"],
             f"said {outcome.output!r} {outcome.errors[-800:]}")
        need(outcome.status == 0, f"run: {outcome} {outcome.errors[-800:]}")
    finally:
        store.close()


def sectors_written(loop):
    return int(Path(f"/sys/block/{Path(loop).name}/stat").read_text().split()[6])


def test_input_output_error(work):
    """A device that fails: fsync says EIO, and after the repair fsync writes the data again."""
    image_home = SmallStore(work, 24)
    image, mounted = image_home.path / "image", work / "mounted"
    mounted.mkdir()
    loop = None
    try:
        shell("truncate", "-s", "200M", image)
        # No journal: its abort would make the file system read-only for good.
        shell("mkfs.ext4", "-q", "-F", "-O", "^has_journal", "-E", "lazy_itable_init=0,nodiscard", image)
        loop = shell("losetup", "--show", "-f", image).stdout.strip()
        shell("mount", loop, mounted)
        before = sectors_written(loop)
        outcome = run_program(work, mounted, f"""
            import errno, os, subprocess, time
            block = bytes((i * 7 + i // 251) & 0xFF for i in range(4096)) * 256
            fd = os.open('data', os.O_RDWR | os.O_CREAT, 0o644)
            for _ in range(48): os.write(fd, block)
            def sync():
                try: os.fsync(fd); return 'ok'
                except OSError as error: return errno.errorcode[error.errno]
            print('first', sync())
            subprocess.run(['mount', '-o', 'remount,size=400m', '{image_home.path}'], check=True)
            for _ in range(50):
                answer = sync()
                if answer == 'ok': break
                time.sleep(0.1)
            print('after the repair', answer)
            """)
        # Which of the two the kernel says depends on how the loop device passes the failure on.
        need(re.fullmatch("first (EIO|ENOSPC)\nafter the repair ok", outcome.output.strip()),
             f"said {outcome.output!r} {outcome.errors[-800:]}")
        need(outcome.status == 0, f"run: {outcome} {outcome.errors[-800:]}")
        # The kernel calls the pages clean that it failed to write (natively the second fsync says 0 and writes
        # nothing).
        # What the device holds after a new mount cannot be asked for: ext4 without a journal loses the extents too.
        need(sectors_written(loop) - before >= (64 << 20) // 512, "the data was not written again after the repair")
        need((mounted / "data").read_bytes() == pattern(48 << 20, 7), "the stored file differs")
    finally:
        shell("umount", "-l", mounted, check=False)
        if loop:
            shell("losetup", "-d", loop, check=False)
        image_home.close()


TESTS = {"full": test_full, "full_unnoticed": test_full_unnoticed,
         "drain_of_a_node_that_has_ended": test_drain_of_a_node_that_has_ended,
         "deleted_files_give_their_room_back": test_deleted_files_give_their_room_back,
         "every_description": test_every_description, "input_output_error": test_input_output_error}


def main():
    if not under_cairn.have_cairn():
        print(f"skipped: {under_cairn.CAIRN} is not built")
        return under_cairn.SKIPPED
    if os.geteuid() != 0 or shell("unshare", "-m", "true", check=False).returncode:
        print("skipped: needs the right to mount")
        return under_cairn.SKIPPED
    failed = []
    for name in sys.argv[1:] or TESTS:
        work = under_cairn.work_directory(f"faults-{name}")
        began = time.monotonic()
        try:
            TESTS[name](work)
            print(f"passed {name} ({time.monotonic() - began:.1f} s)", flush=True)
            under_cairn.remove(work)
        except (Failure, OSError, ValueError, KeyError) as problem:
            print(f"FAILED {name}, kept {work}\n  {problem}", flush=True)
            failed.append(name)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
