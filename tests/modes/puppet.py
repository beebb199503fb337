# SPDX-License-Identifier: Apache-2.0
"""A program under Cairn that does one file call at a time, on command, so that a test can look at the backing
store in between. The puppet is this file, run as a script; Puppet is the string."""

import base64
import json
import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import under_cairn  # noqa: E402

PATTERN_BYTES = 3 * 65536 + 1234


def pattern(seed, length=PATTERN_BYTES):
    """Bytes without zeros, so that a hole is never taken for them."""
    return bytes((at * 7 + at // 4096 + seed * 31) % 255 + 1 for at in range(length))


class Puppet:
    """A running puppet. call() returns what the call returned; any error of it ends the test."""

    def __init__(self, command, directory, environment=None):
        self.process = subprocess.Popen([str(word) for word in command], cwd=directory, text=True,
                                        env=environment or under_cairn.clean_environment(),
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def call(self, name, *arguments):
        words = [{"bytes": base64.b64encode(a).decode()} if isinstance(a, bytes) else a for a in arguments]
        self.process.stdin.write(json.dumps([name, *words]) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(f"{name}{arguments[:1]}: the program ended: {self.process.stderr.read()[-600:]}")
        answer = json.loads(line)
        if "error" in answer:
            raise AssertionError(f"{name}{arguments[:1]}: {answer['error']}")
        value = answer["value"]
        return base64.b64decode(value["bytes"]) if isinstance(value, dict) else value

    def end(self):
        """Lets the program end; returns the exit status of the command."""
        out, err = self.process.communicate(timeout=60)
        self.errors = err
        return self.process.returncode

    def kill(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.communicate(timeout=30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.communicate()


def puppet_words():
    return [sys.executable, str(HERE / "puppet.py")]


def holds(path, data, offset=0):
    """Whether the backing store has these bytes there now."""
    try:
        with open(path, "rb") as file:
            file.seek(offset)
            return file.read(len(data)) == data
    except FileNotFoundError:
        return False


def has_any_of(path, data, offset=0):
    """Whether the backing store has any byte of them; `data` has no zeros."""
    try:
        with open(path, "rb") as file:
            file.seek(offset)
            return any(file.read(len(data)))
    except FileNotFoundError:
        return False


def soon(condition, seconds=5):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.01)
    return condition()


def act(name, arguments):
    values = [base64.b64decode(a["bytes"]) if isinstance(a, dict) else a for a in arguments]
    functions = {"open": lambda path, flags: os.open(path, flags, 0o644),
                 "pwrite": os.pwrite, "pread": os.pread, "close": os.close, "fsync": os.fsync,
                 "ftruncate": os.ftruncate, "unlink": os.unlink, "size": lambda fd: os.fstat(fd).st_size,
                 "write": os.write, "lseek": os.lseek, "mkdir": os.mkdir, "rename": os.rename,
                 "link": os.link, "sendfile": os.sendfile, "copy": os.copy_file_range,
                 "stat": lambda path: [(s := os.stat(path)).st_size, s.st_mtime_ns, s.st_mode],
                 "utime": lambda path, ns: os.utime(path, ns=(ns, ns)),
                 "shell": lambda words: subprocess.run(words, shell=True, stdin=subprocess.DEVNULL).returncode,
                 "become": os.setuid,
                 "listdir": lambda path: sorted(os.listdir(path)), "exists": os.path.exists}
    return functions[name](*values)


def perform():
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        try:
            value = act(name, arguments)
            answer = {"value": {"bytes": base64.b64encode(value).decode()} if isinstance(value, bytes) else value}
        except OSError as error:
            answer = {"error": str(error)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    perform()
