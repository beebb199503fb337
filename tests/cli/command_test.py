# SPDX-License-Identifier: Apache-2.0
"""What the tests of the `cairn` command share: a place of their own, the command, and doubles of the service.

Runs attach to a test double (fake_node.py), which lets a test say what a drain does. CAIRN_BUILD names the build
directory.
"""
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("CAIRN_BUILD", os.path.join(ROOT, "build", "release"))
CAIRN = os.path.join(BUILD, "bin", "cairn")
VERSION = subprocess.run([CAIRN, "version"], capture_output=True, text=True, check=True).stdout.split()[1]
FAKE_NODE = os.path.join(HERE, "fake_node.py")

# What a script runs in the background ignores SIGINT, and so would the commands that are tested.
signal.signal(signal.SIGINT, signal.default_int_handler)


class CommandTest(unittest.TestCase):
    def setUp(self):
        # Not under /tmp directly: a socket's path has 107 bytes at most.
        self.root = tempfile.mkdtemp(prefix="cairn-cli-")
        self.work = os.path.join(self.root, "work")
        self.runs = os.path.join(self.root, "r")
        os.mkdir(self.work)
        self.environment = {k: v for k, v in os.environ.items()
                            if not k.startswith("CAIRN_") and k != "LD_PRELOAD"}
        self.environment["CAIRN_RUN_ROOT"] = self.runs
        self.environment["XDG_STATE_HOME"] = os.path.join(self.root, "state")  # `cairn run` keeps what runs did there
        self.nodes = []

    def tearDown(self):
        for node in self.nodes:
            node.kill()
            node.wait()
        shutil.rmtree(self.root, ignore_errors=True)

    def cairn(self, *arguments, check=None, **options):
        environment = {**self.environment, **options.pop("environment", {})}
        result = subprocess.run([CAIRN, *arguments], cwd=options.pop("cwd", self.work), env=environment,
                                capture_output=True, text=True, timeout=60, check=False, **options)
        if check is not None:
            self.assertEqual(result.returncode, check, result.stdout + result.stderr)
        return result

    def refused(self, *arguments, status=2, says=(), **options):
        """The command fails with this status, and every one of the texts is in its message."""
        result = self.cairn(*arguments, check=status, **options)
        for text in [says] if isinstance(says, str) else says:
            self.assertIn(text, result.stderr)
        for line in result.stderr.splitlines():
            self.assertTrue(line.startswith("cairn: "), line)
        return result

    def on_terminal(self, *arguments):
        """What the command, which succeeds, shows of its progress where messages go to a terminal."""
        master, slave = pty.openpty()
        process = subprocess.Popen([CAIRN, *arguments], env=self.environment, stderr=slave, stdout=subprocess.DEVNULL)
        os.close(slave)
        text = b""
        try:
            while chunk := os.read(master, 4096):
                text += chunk
        except OSError:
            pass
        os.close(master)
        self.assertEqual(process.wait(), 0)
        return text.decode()

    def node(self, name="n", **behaviour):
        """Starts a test double that answers as the behaviour says."""
        os.makedirs(self.runs, mode=0o700, exist_ok=True)
        directory = os.path.join(self.runs, name)
        os.mkdir(directory, 0o700)
        self.behave(name, **behaviour)
        self.write_node_text(name)
        read_end, write_end = os.pipe()
        process = subprocess.Popen([sys.executable, FAKE_NODE, "--directory", directory, "--name", name,
                                    "--ready-fd", str(write_end)], pass_fds=[write_end])
        os.close(write_end)
        self.assertEqual(os.read(read_end, 100), b"ready\n")
        os.close(read_end)
        self.nodes.append(process)
        return name

    def write_node_text(self, name, version=VERSION, directories=()):
        """The configuration that a service writes into its directory, as far as runs read it."""
        listed = "".join(f"\n    - {directory}" for directory in directories) or " []"
        with open(os.path.join(self.runs, name, "config.yaml"), "w", encoding="utf-8") as file:
            file.write(f"# The resolved configuration of node {name}, written by cairn {version} when it was started.\n"
                       f"buffer:\n  directories:{listed}\n  exclude: []\n  scratch: []\n")

    def behave(self, name, **behaviour):
        path = os.path.join(self.runs, name, "behaviour.json")
        with open(path + ".new", "w", encoding="utf-8") as file:
            json.dump(behaviour, file)
        os.rename(path + ".new", path)

    def requests(self, name="n"):
        """What the node has read. A run does not wait for its begin to be read before its program starts."""
        try:
            with open(os.path.join(self.runs, name, "requests.jsonl"), encoding="utf-8") as file:
                return [json.loads(line) for line in file]
        except FileNotFoundError:
            return []

    def commands(self, name="n"):
        return [request["command"] for request in self.requests(name)]

    def config(self, text):
        path = os.path.join(self.root, "job.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def make_program_of_hdf5(self, number):
        """The program a<number>, linked to a library that is called like HDF5's of that number."""
        compiler = shutil.which("cc")
        if compiler is None:
            self.skipTest("no C compiler")
        for name, text in (("a", "int answer(void); int main(void) { return answer(); }"),
                           ("hdf5", "int answer(void) { return 0; }")):
            with open(os.path.join(self.work, name + ".c"), "w", encoding="utf-8") as file:
                file.write(text + "\n")
        library = f"libhdf5_serial.so.{number}"
        for line in (["-shared", "-o", library, f"-Wl,-soname,{library}", "hdf5.c"],
                     ["-o", f"a{number}", "a.c", library, f"-Wl,-rpath,{self.work}"]):
            subprocess.run([compiler, *line], check=True, cwd=self.work)

    def wait_until(self, condition, what):
        deadline = time.monotonic() + 60
        while not condition():
            self.assertLess(time.monotonic(), deadline, what)
            time.sleep(0.01)
