#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A service that dies too often, keepers that die, and both at once: what is dirty is stored or saved, and the end of
the run says so truly.

    rescues.py [SCENE...]

The service is killed by its number, each successor as soon as it is there. Where the store is to refuse, it is a small
tmpfs; without the right to mount that scene is skipped.
"""

import argparse
import os
import re
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

LONG_SECONDS = 120
EXIT_NOT_STORED = 74

# Leaves dirty bytes in three files: one open, one closed, one written in parts. Then it waits, and goes on.
WRITER = textwrap.dedent("""
    import os, sys
    open('closed', 'wb').write(b'c' * 300000)
    file = os.open('open', os.O_RDWR | os.O_CREAT, 0o644)
    for at in range(40):
        os.pwrite(file, bytes([65 + at]) * 5000, at * 70000)
    other = os.open('sparse', os.O_RDWR | os.O_CREAT, 0o644)
    os.pwrite(other, b'x' * 4097, 1 << 20)
    print('written', flush=True)
    sys.stdin.readline()
    for at in range(40):
        assert os.pread(file, 5000, at * 70000) == bytes([65 + at]) * 5000, at
    os.pwrite(file, b'after' * 10, 123)
    assert os.pread(file, 50, 123) == b'after' * 10
    os.close(file)
    os.pwrite(other, b'end', 5)
    os.close(other)
    open('late', 'w').write('late')
    print('done', flush=True)
    """)


class Run:
    """A program under `cairn run` whose node's processes are going to be killed."""

    def __init__(self, work, store, deaths=3, program=WRITER, options=()):
        self.work, self.store = work, store
        self.root = work / "run"
        self.root.mkdir(mode=0o700, exist_ok=True)
        self.state = work / "state"
        self.environment = under_cairn.clean_environment({
            "CAIRN_RUN_ROOT": str(self.root), "XDG_STATE_HOME": str(self.state),
            "CAIRN_TEST_CAPACITIES": f"deaths={deaths}", "CAIRN_FLUSH_DELAY_MS": "600000"})
        line = under_cairn.cairn_command([sys.executable, "-c", program], store, options=options)
        self.process = subprocess.Popen(line, cwd=store, env=self.environment, text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)

    def say(self, text="\n"):
        self.process.stdin.write(text)
        self.process.stdin.flush()

    def expect(self, line):
        ready, _, _ = select.select([self.process.stdout], [], [], LONG_SECONDS)
        assert ready, f"no {line!r}"
        said = self.process.stdout.readline()
        if said != line + "\n":
            self.process.kill()
            raise AssertionError(f"{said!r} is not {line!r}: {self.process.communicate()[1][-1500:]}")

    def end(self):
        try:
            _, errors = self.process.communicate("\n", timeout=LONG_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            raise AssertionError(f"hangs; {self.work}") from None
        return self.process.returncode, errors

    def node(self):
        return next(self.root.glob("*/node.pid")).parent

    def service(self):
        try:
            return int(next(self.root.glob("*/node.pid")).read_text().split()[0])
        except (StopIteration, IndexError, ValueError, FileNotFoundError):
            return None

    def keeper(self):
        return parent_of(self.service())

    def make_wait(self):
        """The service dies, and the keeper does nothing until `cairn run` has said that the program waits."""
        keeper, service = self.keeper(), self.service()
        os.kill(keeper, signal.SIGSTOP)
        try:
            kill(service)
            self.say()
            ready, _, _ = select.select([self.process.stderr], [], [], 30)
            told = self.process.stderr.readline() if ready else ""
        finally:
            os.kill(keeper, signal.SIGCONT)
        assert "waits for the service" in told, told

    def kill_services(self, count):
        """Each once, as soon as it says that it is there. Returns the last one's number."""
        killed = None
        until = time.monotonic() + LONG_SECONDS
        while count and time.monotonic() < until:
            service = self.service()
            if service is None or service == killed or name_of(service) != "cairn-node":
                time.sleep(0.002)
                continue
            kill(service)
            killed, count = service, count - 1
        assert count == 0, f"the service was not started again; {self.work}"
        return killed


def kill(process):
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        pass


def status_words(process):
    text = Path(f"/proc/{process}/stat").read_text()
    return text[text.index("(") + 1:text.rindex(")")], text[text.rindex(")") + 2:].split()


def name_of(process):
    try:
        return status_words(process)[0]
    except (FileNotFoundError, ProcessLookupError):
        return None


def parent_of(process):
    return int(status_words(process)[1][1])


def wait_until(condition, what):
    until = time.monotonic() + LONG_SECONDS
    while not condition():
        assert time.monotonic() < until, what
        time.sleep(0.005)


def native(work, program=WRITER):
    directory = work / "native"
    directory.mkdir()
    subprocess.run([sys.executable, "-c", program], cwd=directory, input="\n", text=True, check=True,
                   stdout=subprocess.DEVNULL)
    return directory


def compare(expected, found, but=()):
    for file in expected.iterdir():
        if file.name not in but:
            assert (found / file.name).read_bytes() == file.read_bytes(), f"{file.name} is not as without Cairn"


def stored_by_a_rescue(work):
    """The service dies three times at once: a rescue stores everything, the program goes on, nothing is amiss."""
    expected, store = native(work), work / "store"
    store.mkdir()
    run = Run(work, store)
    run.expect("written")
    assert not (store / "open").exists() or (store / "open").stat().st_blocks == 0, "nothing was dirty"
    node = run.node()
    run.kill_services(3)
    wait_until(lambda: (node / "stored").exists() or not node.exists(), f"no rescue; {work}")
    assert (store / "closed").read_bytes() == b"c" * 300000
    run.say()
    run.expect("done")
    status, errors = run.end()
    assert status == 0, f"status {status}: {errors[-1500:]}"
    compare(expected, store)
    assert not (run.state / "cairn/rescue").exists(), "there was nothing to save"


def waited_for(work):
    """A program that starts while the rescue is at work sees no file before it is stored."""
    store = work / "store"
    store.mkdir()
    program = textwrap.dedent("""
        import os, subprocess, sys
        open('f', 'wb').write(b'n' * (30 << 20))
        print('written', flush=True)
        sys.stdin.readline()
        for turn in range(20):
            digest = subprocess.run(['cksum', 'f'], stdout=subprocess.PIPE, text=True)
            assert (digest.returncode, digest.stdout.split()[1]) == (0, str(30 << 20)), digest
            print(digest.stdout, end='', flush=True)
        """)
    run = Run(work, store, program=program)
    run.expect("written")
    run.say()
    run.kill_services(3)
    out, errors = run.process.communicate("\n", timeout=LONG_SECONDS)
    assert run.process.returncode == 0, f"status {run.process.returncode}: {errors[-1500:]}; {work}"
    assert len(set(out.splitlines())) == 1, f"stale bytes: {out}"
    assert out.splitlines()[0] == subprocess.run(["cksum", "f"], cwd=store, capture_output=True,
                                                 text=True, check=True).stdout.strip()


def mount(*words):
    return subprocess.run(["mount", *map(str, words)], capture_output=True, check=False).returncode == 0


def saved_by_a_rescue(work):
    """The store is full: it takes a part, the rest is saved and listed, status 74, a command finishes the job."""
    store = work / "store"
    store.mkdir()
    if not mount("-t", "tmpfs", "-o", "size=1m", "tmpfs", store):
        print("skipped: no right to mount; ", end="")
        return
    try:
        program = textwrap.dedent("""
            import os, sys
            names = ['small', 'large', 'tab\\tname']
            for name, size in zip(names, (100000, 4 << 20, 1 << 20)):
                open(name, 'wb').write((name[0].encode() + b'123') * (size // 4))
            print('written', flush=True)
            sys.stdin.readline()
            """)
        run = Run(work, store, program=program)
        run.expect("written")
        run.kill_services(3)
        status, errors = run.end()
        assert status == EXIT_NOT_STORED, f"status {status}: {errors[-1500:]}"
        found = re.search(r"`cairn rescue (\S+)`", errors)
        assert found and "NOT STORED" in errors, errors
        saved = Path(found.group(1))
        assert saved.stat().st_mode & 0o777 == 0o700
        lines = [line.split("\t") for line in (saved / "list").read_text().splitlines()[1:]]
        assert all("No space left" in line[9] for line in lines), lines
        assert {line[8].rsplit("/", 1)[1] for line in lines} <= {"small", "large", "tab\\x09name"}, lines
        for line in lines:
            offset, length = int(line[0]), int(line[1])
            letter = line[8].rsplit("/", 1)[1][0].encode()
            data = (saved / line[2]).read_bytes()[offset:offset + length]
            whole = ((letter + b"123") * (offset + length))[offset % 4:]
            assert data == whole[:length], f"{line}: other bytes were saved"
        again = subprocess.run([under_cairn.CAIRN, "rescue", saved], capture_output=True, text=True, check=False)
        assert again.returncode == EXIT_NOT_STORED, f"{again.returncode}: {again.stdout}{again.stderr}{lines}"
        assert mount("-o", "remount,size=32m", store)
        again = subprocess.run([under_cairn.CAIRN, "rescue", saved], capture_output=True, text=True, check=False)
        assert again.returncode == 0, f"{again.returncode}: {again.stdout}{again.stderr}"
        assert not saved.exists()
        for name, size in (("small", 100000), ("large", 4 << 20), ("tab\tname", 1 << 20)):
            assert (store / name).read_bytes() == (name[0].encode() + b"123") * (size // 4), name
    finally:
        subprocess.run(["umount", "-l", store], check=False)


LIST_HEAD = ("# cairn rescue list 1: offset length saved-in size mtime-ns stored-mtime-ns device inode path why\n")
MEGABYTE = 1 << 20


def a_command_that_is_killed(work):
    """`cairn rescue` may be killed after any of its writes, by the limit of a file's size here: the next call knows
    that it was at work, and finishes."""
    store = work / "store"
    store.mkdir()
    for killed_at in (1, MEGABYTE, 2 * MEGABYTE + 5, 4 * MEGABYTE - 1):
        file, saved = store / "f", work / "saved"
        file.write_bytes(b"old" * 1000)
        saved.mkdir(mode=0o700)
        (saved / "1").write_bytes(b"new!" * MEGABYTE)
        status = file.stat()
        (saved / "list").write_text(f"{LIST_HEAD}0\t{4 * MEGABYTE}\t1\t{4 * MEGABYTE}\t1700000000000000000\t"
                                    f"{status.st_mtime_ns}\t{status.st_dev}\t{status.st_ino}\t{file}\tfull\n")
        (saved / "list").chmod(0o600)
        command = [under_cairn.CAIRN, "rescue", saved]
        limit = max(killed_at, (saved / "list").stat().st_size + 100)
        killed = subprocess.run(["prlimit", f"--fsize={limit}", *command], capture_output=True, text=True,
                                check=False)
        assert killed.returncode == -signal.SIGXFSZ, killed
        if killed_at == 1:
            # The word that it begins was cut off by a crash of the machine.
            with open(saved / "list", "r+", encoding="utf-8") as out:
                out.truncate(os.path.getsize(saved / "list") - 3)
            os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
        again = subprocess.run(command, capture_output=True, text=True, check=False)
        assert again.returncode == 0 and not saved.exists(), f"killed at {killed_at}: {again}"
        assert file.read_bytes() == b"new!" * MEGABYTE, f"killed at {killed_at}"
        assert file.stat().st_mtime_ns == 1700000000000000000
        file.unlink()


def rescues_that_die(work):
    """A rescue may be killed, too: the next one goes on."""
    expected, store = native(work), work / "store"
    store.mkdir()
    run = Run(work, store)
    run.expect("written")
    node = run.node()
    keeper = run.keeper()
    run.kill_services(3)
    for _ in range(3):
        children = Path(f"/proc/{keeper}/task/{keeper}/children")
        try:
            for child in children.read_text().split():
                kill(int(child))
        except FileNotFoundError:
            break
        time.sleep(0.002)
    wait_until(lambda: (node / "stored").exists() or (node / "rescued").exists() or not node.exists(), "no rescue")
    run.say()
    run.expect("done")
    status, errors = run.end()
    # The file that was being stored at that instant is saved instead.
    assert status in (0, EXIT_NOT_STORED), f"status {status}: {errors[-1500:]}"
    if status == EXIT_NOT_STORED:
        found = re.search(r"`cairn rescue (\S+)`", errors)
        assert found, errors
        subprocess.run([under_cairn.CAIRN, "rescue", found.group(1)], capture_output=True, text=True, check=False)
    compare(expected, store, but=() if status == 0 else ("open", "sparse", "closed"))


def the_keeper_dies(work):
    """The service goes on, makes a new keeper, and is followed when it dies as well; again and again."""
    expected, store = native(work), work / "store"
    store.mkdir()
    run = Run(work, store, deaths=1000000)
    run.expect("written")
    for turn in range(3):
        service, keeper = run.service(), status_of(run)["keeper_pid"]
        assert name_of(keeper) == "cairn-keeper", name_of(keeper)
        kill(keeper)
        wait_until(lambda s=service, k=keeper: new_keeper(run, s, k), f"no new keeper; {work}")
        if turn != 1:
            kill(service)
            wait_until(lambda s=service: run.service() not in (None, s) and name_of(run.service()) == "cairn-node",
                       f"nobody follows; {work}")
            wait_until(lambda: "restarts" in (status_of(run) or {}), f"no answer; {work}")
            assert status_of(run)["restarts"] > 0, status_of(run)
        else:
            assert status_of(run)["keepers_replaced"] > 0
    run.say()
    run.expect("done")
    status, errors = run.end()
    assert status == 0, f"status {status}: {errors[-1500:]}"
    compare(expected, store)


def new_keeper(run, service, before):
    status = status_of(run)
    if not status or status["service_pid"] != service:
        return False
    keeper = status["keeper_pid"]
    return keeper not in (0, before) and name_of(keeper) == "cairn-keeper"


def status_of(run):
    import json
    outcome = under_cairn.execute([under_cairn.CAIRN, "status", "--json", "--node", run.node()], run.work, 60,
                                  run.environment)
    return json.loads(outcome.output) if outcome.status == 0 else None


def kill_both(run):
    under_cairn.kill_node(run.service())
    # A program looks no more often than this.
    time.sleep(0.02)


def both_die(work):
    """Keeper and service in one instant: the programs store what they have open themselves and go on."""
    expected, store = native(work), work / "store"
    store.mkdir()
    run = Run(work, store)
    run.expect("written")
    kill_both(run)
    run.say()
    run.expect("done")
    status, errors = run.end()
    assert status == EXIT_NOT_STORED and "NOT CONFIRMED" in errors, f"status {status}: {errors[-1500:]}"
    # Nobody has the closed file's descriptor any more.
    compare(expected, store, but=("closed",))


def a_vector_finds_out(work):
    """Keeper and service have died: also a program that writes nothing but vectors finds out, before it closes."""
    store = work / "store"
    store.mkdir()
    program = textwrap.dedent("""
        import os, sys
        file = os.open('f', os.O_CREAT | os.O_RDWR)
        os.pwritev(file, [b'before'], 0)
        print('written', flush=True)
        sys.stdin.readline()
        for number in range(40):
            os.pwritev(file, [b'%04d' % number, b'after!'], 10 * number)
        print('done', flush=True)
        sys.stdin.readline()
        """)
    run = Run(work, store, program=program)
    run.expect("written")
    kill_both(run)
    run.say()
    run.expect("done")
    expected = "".join(f"{number:04d}after!" for number in range(40))
    assert (store / "f").read_text() == expected, "nobody has stored it"
    status, errors = run.end()
    assert status == EXIT_NOT_STORED and "NOT CONFIRMED" in errors, f"status {status}: {errors[-1500:]}"


def a_wait_is_told(work):
    """No service comes for a while: `cairn run` says once that a program waits, and all is well afterwards."""
    store = work / "store"
    store.mkdir()
    program = textwrap.dedent("""
        import os, sys
        open('f', 'w').write('f')
        print('written', flush=True)
        sys.stdin.readline()
        os.sync()
        print('done', flush=True)
        """)
    run = Run(work, store, deaths=1000000, program=program)
    run.expect("written")
    run.make_wait()
    run.expect("done")
    status, errors = run.end()
    assert status == 0 and not errors, f"status {status}: {errors[-1500:]}"
    assert (store / "f").read_text() == "f"


def a_sync_outwaits_the_rescue(work):
    """A rescue does not store what is scratch: that is no error for a program that waits in syncfs()."""
    store = work / "store"
    (store / "scratch").mkdir(parents=True)
    program = textwrap.dedent("""
        import ctypes, os, sys
        scratch = os.open('scratch/s', os.O_RDWR | os.O_CREAT)
        os.write(scratch, b's' * 5000)
        file = os.open('f', os.O_WRONLY | os.O_CREAT)
        os.write(file, b'f' * 5000)
        print('written', flush=True)
        sys.stdin.readline()
        libc = ctypes.CDLL(None, use_errno=True)
        print(ctypes.get_errno() if libc.syncfs(file) < 0 else 'synced', flush=True)
        assert os.pread(scratch, 6000, 0) == b's' * 5000
        sys.stdin.readline()
        """)
    run = Run(work, store, deaths=1, program=program, options=("--scratch", store / "scratch"))
    run.expect("written")
    node = run.node()
    run.make_wait()
    run.expect("synced")
    assert (node / "stored").exists(), "it was no rescue"
    assert (store / "f").read_bytes() == b"f" * 5000
    status, errors = run.end()
    assert status == 0, f"status {status}: {errors[-1500:]}"


SCENES = [stored_by_a_rescue, waited_for, saved_by_a_rescue, a_command_that_is_killed, rescues_that_die,
          the_keeper_dies, both_die, a_vector_finds_out, a_wait_is_told, a_sync_outwaits_the_rescue]


def play(scenes, about):
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("scene", nargs="*", help=", ".join(scene.__name__ for scene in scenes))
    options = parser.parse_args()
    if not under_cairn.have_cairn():
        return under_cairn.SKIPPED
    for scene in scenes:
        if options.scene and scene.__name__ not in options.scene:
            continue
        work = under_cairn.work_directory("rescues-" + scene.__name__)
        began = time.monotonic()
        print(f"{scene.__name__}: ", end="", flush=True)
        scene(work)
        print(f"as promised ({time.monotonic() - began:.1f} s)", flush=True)
        under_cairn.remove(work)
    return 0


if __name__ == "__main__":
    sys.exit(play(SCENES, __doc__))
