#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keeper and service of a node killed with SIGKILL at random instants while it fetches ahead, flushes and moves
blocks for programs: they go on with what is in the tiers and with the backing store, and none waits for good.

    kill_service.py [--rounds 6] [--seed S]

Several programs read a file that is larger than RAM, over and over, and write records into files of their own. After
the death of the service each of them reads and writes for a while, reads its records back, and stores them with fsync.
Then every byte that they have read was right, and what is stored is what they wrote.
"""

import argparse
import contextlib
import errno
import os
import random
import select
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import under_cairn  # noqa: E402

BLOCK, BLOCKS = 1 << 16, 640  # 40 MiB
PROGRAMS = 3
DEATHS_AT_ONCE = 10
# Nothing of this takes so long; only then does somebody wait for good.
LONG_SECONDS = 60
EXIT_NOT_CONFIRMED = 74

PROGRAM = textwrap.dedent("""
    import os, random, sys
    source, own, dead, number = *sys.argv[1:4], int(sys.argv[4])
    BLOCK, BLOCKS, RECORD, RECORDS = 65536, 640, 3000, 1200
    draw = random.Random(number)
    file = os.open(source, os.O_RDONLY)
    records = os.open(own, os.O_RDWR | os.O_CREAT, 0o644)
    written = {}

    def pass_over():
        for at in range(BLOCKS):
            data = os.pread(file, BLOCK, at * BLOCK)
            assert data == at.to_bytes(8, 'little') * (BLOCK // 8), f'block {at} of the source is wrong'
            place, value = draw.randrange(RECORDS), draw.randrange(1, 256)
            assert os.pwrite(records, bytes([value]) * RECORD, place * RECORD) == RECORD
            written[place] = value
            known = draw.choice(list(written))
            data = os.pread(records, RECORD, known * RECORD)
            assert data == bytes([written[known]]) * RECORD, f'record {known} is not what was written'

    pass_over()
    print('at work', flush=True)
    while not os.path.exists(dead):
        pass_over()
    pass_over()
    for place, value in written.items():
        assert os.pread(records, RECORD, place * RECORD) == bytes([value]) * RECORD, f'record {place} is lost'
    os.fsync(records)
    for place, value in sorted(written.items()):
        print(place, value)
    """)


class Node:
    """A node of its own, whose service is going to be killed."""

    def __init__(self, work):
        self.work, self.directory, self.tier = work, work / "data", work / "tier"
        self.directory.mkdir()
        self.tier.mkdir()
        (work / "run").mkdir(mode=0o700)
        self.environment = under_cairn.clean_environment(
            {"CAIRN_RUN_ROOT": str(work / "run"), "XDG_STATE_HOME": str(work / "state")})

    def cairn(self, *words):
        outcome = under_cairn.execute([under_cairn.CAIRN, *words], self.directory, 60, self.environment)
        if outcome.status != 0:
            raise AssertionError(f"cairn {' '.join(map(str, words))}: {outcome} {outcome.errors[-600:]}")
        return outcome.output

    def up(self, *options):
        """Also where another one of the same name was killed before."""
        storage = ("--ram", "16M", "--tier", f"{self.tier}:16M", "--buffer", self.directory)
        self.cairn("up", "--name", "n", *storage, *options)

    def service(self):
        return int(next((self.work / "run").rglob("node.pid")).read_text().split()[0])

    def kill(self):
        under_cairn.kill_node(self.service())

    def start_with_input(self, *words):
        return self.start(*words, stdin=subprocess.PIPE)

    def start(self, *words, stdin=subprocess.DEVNULL):
        line = [under_cairn.CAIRN, "run", "--no-report", "--node", "n", "--", *words]
        return subprocess.Popen([str(word) for word in line], cwd=self.directory, env=self.environment, text=True,
                                stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                start_new_session=True)


def make_source(path):
    with open(path, "wb") as file:
        for at in range(BLOCKS):
            file.write(at.to_bytes(8, "little") * (BLOCK // 8))


def drop_from_page_cache(path):
    """So that what is fetched takes a while."""
    file = os.open(path, os.O_RDONLY)
    os.fsync(file)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(file)


def end_of(program, own):
    try:
        out, err = program.communicate(timeout=LONG_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(program.pid, signal.SIGKILL)
        program.communicate()
        raise AssertionError(f"{own.name}: waits for good for what the service held when it died") from None
    # A run with a dead service reports that nobody can confirm that all is stored.
    assert program.returncode == EXIT_NOT_CONFIRMED, f"{own.name}: {program.returncode}: {err[-800:]}"
    assert "NOT CONFIRMED" in err, f"{own.name}: {err[-800:]}"
    stored = own.read_bytes()
    for line in out.splitlines():
        place, value = map(int, line.split())
        assert stored[place * 3000:(place + 1) * 3000] == bytes([value]) * 3000, f"{own.name}: record {place}"


def one_death(node, draw, number):
    source, dead = node.directory / "source", node.work / f"dead-{number}"
    node.up()
    drop_from_page_cache(source)
    owns = [node.directory / f"own-{number}-{at}" for at in range(PROGRAMS)]
    programs = [node.start(sys.executable, "-c", PROGRAM, source, own, dead, at) for at, own in enumerate(owns)]
    try:
        for program in programs:
            line = program.stdout.readline()
            assert line == "at work\n", f"{line!r}: {program.stderr.read()[-800:]}"
        drop_from_page_cache(source)
        time.sleep(draw.random() * 0.3)
        under_cairn.strike_node(node.service())
        dead.touch()
        for program, own in zip(programs, owns):
            end_of(program, own)
    finally:
        for program in programs:
            if program.poll() is None:
                os.killpg(program.pid, signal.SIGKILL)
                program.communicate()


# Its reader's fsync has nobody to ask: another node's service knows other files by the same numbers. What it says is
# true all the same: the process stores through its own writer, or the call fails.
ORPHAN = textwrap.dedent("""
    import errno, os, sys
    own = sys.argv[1]
    writer = os.open(own, os.O_WRONLY | os.O_CREAT, 0o644)
    assert os.write(writer, b'x' * 8192) == 8192
    reader = os.open(own, os.O_RDONLY)
    print('written', flush=True)
    sys.stdin.readline()
    try:
        os.fsync(reader)
    except OSError as error:
        assert error.errno == errno.EIO, error
        os.fsync(writer)
    print('stored', flush=True)
    sys.stdin.readline()
    """)

# A process that begins without a node does not know that `fresh` is in the tiers alone, nor what they have of others.
BLIND = textwrap.dedent("""
    import ctypes, os, resource, struct
    libc = ctypes.CDLL(None, use_errno=True)
    SYS_OPENAT2 = 437

    def spawn():
        cut = (os.POSIX_SPAWN_OPEN, 1, 'spawned', os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.posix_spawn('/bin/true', ['true'], os.environ, file_actions=[cut])

    def reopen():
        if not libc.freopen(b'reopened', b'w', ctypes.c_void_p.in_dll(libc, 'stderr')):
            raise OSError(ctypes.get_errno(), '')

    def exchange():
        if libc.renameat2(-100, b'fresh', -100, b'replaced', 2) != 0:
            raise OSError(ctypes.get_errno(), '')

    def open_by_rules():
        rules = struct.pack('QQQ', os.O_RDONLY | os.O_TRUNC, 0, 0)
        if libc.syscall(SYS_OPENAT2, -100, b'cut', rules, len(rules)) < 0:
            raise OSError(ctypes.get_errno(), '')

    def without_descriptors(call):
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
        try:
            call()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)

    def make_without_rights():
        if libc.capset(struct.pack('Ii', 0x20080522, 0), bytes(24)) < 0:
            raise OSError(ctypes.get_errno(), '')
        os.close(os.open('../unmanaged', os.O_RDONLY | os.O_CREAT | os.O_TRUNC, 0o444))

    # Reopening costs the process a descriptor, making the file its rights: both come late.
    for attempt in (lambda: without_descriptors(lambda: os.rename('fresh', 'replaced')),
                    lambda: without_descriptors(lambda: os.truncate('replaced', 0)),
                    lambda: without_descriptors(spawn),
                    lambda: os.rename('fresh', 'replaced'), exchange, lambda: os.truncate('replaced', 0), spawn,
                    lambda: os.open('cut', os.O_RDONLY | os.O_TRUNC),
                    lambda: os.open('cut', os.O_RDONLY | os.O_TRUNC | os.O_EXCL), open_by_rules, reopen,
                    lambda: os.rename('fresh', 'named'), make_without_rights):
        try:
            attempt()
            print('done', end=' ', flush=True)
        except OSError as error:
            print(error.errno, end=' ', flush=True)
    """)
REPLACING = textwrap.dedent("""
    import os, subprocess, sys
    for name in ('replaced', 'spawned', 'reopened', 'cut', 'own'):
        old = os.open(name, os.O_WRONLY | os.O_CREAT, 0o644)
        os.write(old, b'old' * 3000)
        os.fsync(old)
        os.close(old)
    for name in ('fresh', 'fresher'):
        with open(name, 'wb') as fresh:
            fresh.write(b'new' * 3000)
    print('written', flush=True)
    sys.stdin.readline()
    os.rename('fresher', 'own')
    subprocess.run([sys.executable, '-c', sys.argv[1]])
    """)


def who_begins_later_replaces_nothing(node):
    """The old content would be gone, and the new one nowhere. To give a file another name loses nothing. A program that
    was there before stores the new content first."""
    node.up("--trigger", "on-exit")
    program = node.start_with_input(sys.executable, "-c", REPLACING, BLIND)
    try:
        assert program.stdout.readline() == "written\n", program.stderr.read()[-800:]
        node.kill()
        out, err = program.communicate("\n", timeout=LONG_SECONDS)
        expected = f"{errno.EIO} " * 2 + f"{errno.EMFILE} " + f"{errno.EIO} " * 8 + "done " * 2
        assert out == expected, f"{out} {err[-800:]}"
    finally:
        if program.poll() is None:
            os.killpg(program.pid, signal.SIGKILL)
            program.communicate()
    for name in ("replaced", "spawned", "reopened", "cut", "own"):
        content = b"new" if name == "own" else b"old"
        assert (node.directory / name).read_bytes() == content * 3000, f"{name} is neither old nor new"
    assert (node.directory / "named").exists()


# It looks for the node at most every few milliseconds, and has just looked.
AT_ONCE = textwrap.dedent("""
    import contextlib, os, select, signal, sys, time
    with open('kept', 'wb') as old:
        old.write(b'old' * 3000)
        os.fsync(old.fileno())
    with open('newest', 'wb') as fresh:
        fresh.write(b'new' * 3000)
    print('written', flush=True)
    group, *processes = map(int, sys.stdin.readline().split())
    living = []
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            living.append(os.pidfd_open(process))
    os.killpg(group, signal.SIGKILL)
    end = time.monotonic() + 60
    while len(select.select(living, [], [], 0)[0]) < len(living):
        assert time.monotonic() < end, 'they do not die'
        os.close(os.open('kept', os.O_RDONLY))
    os.rename('newest', 'kept')
    print('renamed', flush=True)
    sys.stdin.readline()
    """)


def what_is_renamed_at_once_is_stored(node):
    """The node dies, and in the same moment one of its programs replaces a file."""
    for _ in range(DEATHS_AT_ONCE):
        node.up("--trigger", "on-exit")
        program = node.start_with_input(sys.executable, "-c", AT_ONCE)
        try:
            assert program.stdout.readline() == "written\n", program.stderr.read()[-800:]
            group = os.getpgid(node.service())
            program.stdin.write(f"{group} {' '.join(under_cairn.processes_of(group))}\n")
            program.stdin.flush()
            assert program.stdout.readline() == "renamed\n", program.stderr.read()[-800:]
            assert (node.directory / "kept").read_bytes() == b"new" * 3000, "a name without its bytes"
            program.communicate("\n", timeout=LONG_SECONDS)
        finally:
            if program.poll() is None:
                os.killpg(program.pid, signal.SIGKILL)
                program.communicate()


STRANGER = "import os, sys; f = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT); os.write(f, b'y'); sys.stdin.readline()"


def another_node_does_not_answer(node):
    """A node of the same name after the death of the first."""
    own = node.directory / "orphan"
    node.up()
    orphan = node.start_with_input(sys.executable, "-c", ORPHAN, own)
    stranger = None
    try:
        assert orphan.stdout.readline() == "written\n", orphan.stderr.read()[-800:]
        node.kill()
        node.up()
        stranger = node.start_with_input(sys.executable, "-c", STRANGER, node.directory / "stranger")
        time.sleep(0.5)
        orphan.stdin.write("\n")
        orphan.stdin.flush()
        assert orphan.stdout.readline() == "stored\n", orphan.stderr.read()[-800:]
        assert own.read_bytes() == b"x" * 8192, "fsync was answered by a node that knows nothing of the file"
        _, err = orphan.communicate("\n", timeout=LONG_SECONDS)
        assert orphan.returncode in (0, EXIT_NOT_CONFIRMED), f"{orphan.returncode}: {err[-800:]}"
        assert own.read_bytes() == b"x" * 8192
    finally:
        for program in (orphan, stranger):
            if program is not None and program.poll() is None:
                os.killpg(program.pid, signal.SIGKILL)
                program.communicate()
    node.cairn("down", "--node", "n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    if not under_cairn.have_cairn():
        print(f"skipped: {under_cairn.CAIRN} is not built")
        return under_cairn.SKIPPED
    print(f"seed {options.seed}")
    draw, work = random.Random(options.seed), under_cairn.work_directory("faults-service")
    node = Node(work)
    make_source(node.directory / "source")
    try:
        for number in range(options.rounds):
            began = time.monotonic()
            one_death(node, draw, number)
            print(f"death {number} ({time.monotonic() - began:.1f} s)", flush=True)
        another_node_does_not_answer(node)
        who_begins_later_replaces_nothing(node)
        what_is_renamed_at_once_is_stored(node)
    except AssertionError as problem:
        print(f"FAILED (seed {options.seed}), kept: {work}\n  {problem}")
        return 1
    under_cairn.remove(work)
    return 0


if __name__ == "__main__":
    sys.exit(main())
