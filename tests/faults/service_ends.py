#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A node that gets signals, or loses its files, around a death of its service.

    service_ends.py [SCENE...]

Each scene has a node of its own, whose keeper is the parent of its service.
"""

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import under_cairn  # noqa: E402

LONG_SECONDS = 60
LETTERS = b"abcdefgh"

# Writes more than is stored in a moment, and waits for the end of its input.
WRITER = textwrap.dedent("""
    import sys
    with open('big', 'wb') as file:
        for letter in %r:
            file.write(bytes([letter]) * (16 << 20))
        file.flush()
        print('written', flush=True)
        sys.stdin.read()
    """ % LETTERS)

# Writes files after the node's lock file has been made again, kills the service, and reads them.
OPENER = textwrap.dedent("""
    import os, pathlib, signal, sys, time
    lock, until = pathlib.Path(sys.argv[1]), time.monotonic() + 20
    service = int(lock.read_text())
    lock.unlink()
    while not lock.exists() or lock.read_text() != f'{service}\\n':
        assert time.monotonic() < until, 'the lock file is not made again'
        time.sleep(0.01)
    files = [os.open(f'f{number}', os.O_RDWR | os.O_CREAT) for number in range(30)]
    for file in files:
        os.write(file, b'A' * 10000)
        os.fsync(file)
    os.kill(service, signal.SIGKILL)
    for file in files:
        os.fsync(file)
        assert os.pread(file, 20000, 0) == b'A' * 10000
    """)


class Node:
    def __init__(self, work):
        self.work = work
        run_root = work / "run"
        run_root.mkdir(mode=0o700)
        self.here = work / "t"
        self.here.mkdir()
        self.directory = run_root / "n"
        self.environment = under_cairn.clean_environment({"CAIRN_RUN_ROOT": str(run_root),
                                                          "XDG_STATE_HOME": str(work / "state")})
        self.cairn("up", "--name", "n", "--ram", "256M")
        self.keeper = self.parent_of(self.service())

    def cairn(self, *words, check=True):
        return subprocess.run([under_cairn.CAIRN, *words], cwd=self.here, env=self.environment, text=True, check=check,
                              capture_output=True, timeout=LONG_SECONDS, stdin=subprocess.DEVNULL)

    def run(self, program, *words):
        return subprocess.Popen([under_cairn.CAIRN, "run", "--node", "n", "--", sys.executable, "-c", program, *words],
                                cwd=self.here, env=self.environment, text=True, stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def service(self):
        return int((self.directory / "node.pid").read_text())

    @staticmethod
    def parent_of(process):
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])

    def log(self):
        return (self.directory / "node.log").read_text()[-800:]

    def down(self):
        self.cairn("down", "--name", "n", check=False)


def await_that(is_so, what):
    until = time.monotonic() + LONG_SECONDS
    while not is_so():
        if time.monotonic() > until:
            raise AssertionError(what)
        time.sleep(0.02)


def is_gone(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except FileNotFoundError:
        return True


def signal_to_all(node):
    """SIGTERM to all processes of a node comes to the service twice, and is one wish: all is stored."""
    program = node.run(WRITER)
    assert program.stdout.readline() == "written\n", program.stderr.read()
    os.killpg(node.keeper, signal.SIGTERM)
    await_that(lambda: is_gone(node.keeper), f"the node does not end: {node.log()}")
    stored = (node.here / "big").read_bytes()
    program.communicate(timeout=LONG_SECONDS)
    expected = b"".join(bytes([letter]) * (16 << 20) for letter in LETTERS)
    assert stored == expected, f"not everything was stored when the node had ended: {node.log()}"


def lock_made_again(node):
    """The lock file of a node is made again, and the next service takes that for it, and no other file."""
    program = node.run(OPENER, str(node.directory / "node.pid"))
    _, errors = program.communicate(timeout=LONG_SECONDS)
    assert program.returncode == 0, f"{errors[-800:]} {node.log()}"
    sizes = {file.name: file.stat().st_size for file in node.here.iterdir()}
    assert len(sizes) == 30 and set(sizes.values()) == {10000}, sizes
    assert "started anew once" in node.cairn("status", "--node", "n").stdout


def removed_meanwhile(node):
    """Somebody removes files of a node while it has no service; the next service makes them again."""
    service = node.service()
    os.kill(node.keeper, signal.SIGSTOP)
    os.kill(service, signal.SIGKILL)
    await_that(lambda: is_gone(service), "the service does not die")
    for name in ("node.pid", "client.sock", "control.sock"):
        (node.directory / name).unlink()
    os.kill(node.keeper, signal.SIGCONT)
    await_that(lambda: node.cairn("status", "--node", "n", check=False).returncode == 0,
               f"nobody reaches the node any more: {node.log()}")


SCENES = {scene.__name__: scene for scene in (signal_to_all, lock_made_again, removed_meanwhile)}


def main():
    if not under_cairn.have_cairn():
        print(f"skipped: {under_cairn.CAIRN} is not built")
        return under_cairn.SKIPPED
    failed = 0
    for name in sys.argv[1:] or SCENES:
        work = under_cairn.work_directory(f"ends-{name}")
        node = Node(work)
        try:
            SCENES[name](node)
            print(f"passed {name}", flush=True)
        except (AssertionError, subprocess.SubprocessError) as problem:
            print(f"FAILED {name}, kept {work}: {problem}", flush=True)
            failed += 1
        finally:
            node.down()
            if not is_gone(node.keeper):
                os.killpg(node.keeper, signal.SIGKILL)
        if not failed:
            shutil.rmtree(work, ignore_errors=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
