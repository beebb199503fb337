# SPDX-License-Identifier: Apache-2.0
"""`cairn top` beside a real node: its figures are true, its screen obeys keys, the terminal is given back."""
import csv
import fcntl
import io
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
import unittest

from command_test import CAIRN, CommandTest

MIB = 1 << 20


class TopTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.environment.update(LC_ALL="C.UTF-8", TERM="xterm")
        self.has_node = False

    def start_node(self):
        """A node that keeps what is written until it is drained."""
        self.cairn("up", "--name", "job", "--ram", "64M", "--trigger", "on-exit", check=0)
        self.has_node = True

    def tearDown(self):
        if self.has_node:  # before its directory is removed
            self.cairn("down", "--node", "job", "--discard")
        super().tearDown()

    def write_files(self):
        self.cairn("run", "--node", "job", "--", "sh", "-c",
                   "head -c 3M /dev/zero > large; head -c 1M /dev/zero > a-small", check=0)

    def test_figures_are_true(self):
        self.start_node()
        top = subprocess.Popen([CAIRN, "top", "--csv", "--count", "2", "--interval", "1", "--node", "job"],
                               cwd=self.work, env=self.environment, stdout=subprocess.PIPE, text=True)
        head = top.stdout.readline()
        self.write_files()
        text = head + top.communicate(timeout=20)[0]
        lines = list(csv.DictReader(io.StringIO(text)))
        self.assertEqual(len(lines), 2, text)
        self.assertEqual(lines[-1]["node"], "job")
        self.assertEqual(int(lines[-1]["written_bytes"]), 4 * MIB)
        self.assertEqual(int(lines[-1]["capacity_bytes"]), 64 * MIB)
        seconds = float(lines[1]["time"]) - float(lines[0]["time"])
        self.assertAlmostEqual(seconds, 1, delta=0.5)
        # The rates of both intervals together are what was written.
        written = sum(float(line["write_bytes_per_second"]) for line in lines) * seconds
        self.assertAlmostEqual(written / (4 * MIB), 1, delta=0.3)

    def test_one_screen_has_no_control_characters(self):
        self.start_node()
        result = subprocess.run([CAIRN, "run", "--node", "job", "--", "sh", "-c",
                                 f"head -c 3M /dev/zero > 'x\x1b[2J'; {CAIRN} top --once --interval 0.3"],
                                cwd=self.work, env=self.environment, capture_output=True, text=True, check=True,
                                timeout=30)
        self.assertNotRegex(result.stdout, r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")
        self.assertIn("cairn top: node job", result.stdout)
        self.assertIn("of 64 MiB", result.stdout)
        self.assertRegex(result.stdout, r"RUNS 1 ")
        self.assertIn("3 MiB", result.stdout)
        self.assertRegex(result.stdout, r"x\?\[2J")
        self.assertLessEqual(len(result.stdout.splitlines()), 24)

    def test_without_a_node_or_a_terminal(self):
        self.refused("top", "--once", says="no node")
        self.refused("top", "--interval", "0", says="--interval")
        self.start_node()
        self.refused("top", says="--once")

    def test_output_that_cannot_be_written(self):
        self.start_node()
        for flags in (["--csv", "--interval", "0.1"], ["--once", "--interval", "0.1"]):
            with open("/dev/full", "w", encoding="utf-8") as full:
                top = subprocess.run([CAIRN, "top", *flags], env=self.environment, stdout=full, stderr=subprocess.PIPE,
                                     text=True, timeout=20, check=False)
            self.assertEqual(top.returncode, 2, top)
            self.assertIn("standard output: No space left on device", top.stderr)

    def test_a_terminal_without_a_cursor(self):
        self.start_node()
        self.environment["TERM"] = "dumb"
        master, _, _, top = self.on_screen()
        self.assertEqual(top.wait(timeout=10), 2)
        self.assertIn("no cursor that can be moved", self.read_until(master, "--once"))

    def test_signals_give_the_terminal_back(self):
        self.start_node()
        for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
            master, slave, before, top = self.on_screen()
            self.read_until(master, "q quit")
            top.send_signal(number)
            self.assertEqual(top.wait(timeout=10), -number)
            self.assertIn("\x1b[?1049l", self.read_until(master, None))
            self.assertEqual(termios.tcgetattr(slave), before)

    def test_a_signal_ends_it_while_the_node_does_not_answer(self):
        self.start_node()
        service = json.loads(self.cairn("status", "--json", check=0).stdout)["service_pid"]
        master, _, _, top = self.on_screen()
        self.read_until(master, "q quit")
        os.kill(service, signal.SIGSTOP)
        try:
            time.sleep(0.6)
            top.send_signal(signal.SIGTERM)
            self.assertEqual(top.wait(timeout=10), -signal.SIGTERM)
            self.assertIn("\x1b[?1049l", self.read_until(master, None))
        finally:
            os.kill(service, signal.SIGCONT)

    def on_screen(self):
        """The command on a terminal of 80x24: both ends, the modes that it had, the process."""
        master, slave = pty.openpty()
        self.addCleanup(os.close, master)
        self.addCleanup(os.close, slave)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        modes = termios.tcgetattr(slave)
        top = subprocess.Popen([CAIRN, "top", "--node", "job", "--interval", "0.3"], cwd=self.work,
                               env=self.environment, stdin=slave, stdout=slave, stderr=slave)
        self.addCleanup(top.wait)
        self.addCleanup(top.kill)
        return master, slave, modes, top

    def test_keys_on_a_terminal(self):
        self.start_node()
        holder = subprocess.Popen([CAIRN, "run", "--node", "job", "--", "sh", "-c",
                                   "head -c 3M /dev/zero > large; head -c 1M /dev/zero > a-small; echo there; read x"],
                                  cwd=self.work, env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, text=True)
        try:
            self.assertEqual(holder.stdout.readline(), "there\n")
            for last in (b"q", b"\x03"):
                self.press_keys(last)
        finally:
            holder.communicate("\n", timeout=20)

    def press_keys(self, last):
        master, slave, before, top = self.on_screen()
        screen = self.read_until(master, "q quit")
        self.assertIn("FILES NOT STORED: 2, by size", screen)
        self.assertLess(screen.index("/large"), screen.index("/a-small"))
        os.write(master, b"n")
        self.read_until(master, "a-small")  # only what differs is painted
        os.write(master, b"AR")
        self.read_until(master, "reversed")
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        top.send_signal(signal.SIGWINCH)
        screen = self.read_until(master, "q quit")
        self.assertIn("by name", screen)
        self.assertIn("COMMAND, by age, reversed", screen)
        self.assertLess(screen.index("/a-small"), screen.index("/large"))
        os.write(master, last)
        self.assertEqual(top.wait(timeout=10), 0)
        rest = self.read_until(master, None)
        self.assertIn("\x1b[?1049l", rest, "the screen that was there comes back")
        self.assertEqual(termios.tcgetattr(slave), before)

    def read_until(self, master, text):
        """What came; without a text all that is there."""
        received = ""
        end = time.monotonic() + 10
        while time.monotonic() < end:
            if text is not None and text in re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", received):
                return received
            if select.select([master], [], [], 0.3)[0]:
                received += os.read(master, 65536).decode(errors="replace")
            elif text is None:
                return received
        self.fail(f"{text!r} did not come: {received!r}")


if __name__ == "__main__":
    unittest.main(verbosity=1)
