#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cairn run` and its node: exit statuses, signals, reports, and nothing left behind.

Runs attach to a test double of the service, which lets a test say what a drain does. The last class starts the real
service.
"""
import json
import os
import signal
import subprocess
import sys
import time
import unittest

from command_test import CAIRN, CommandTest


class Run(CommandTest):
    def test_exit_status_is_the_programs(self):
        name = self.node()
        self.cairn("run", "--node", name, "--", "sh", "-c", "exit 3", check=3)
        self.cairn("run", "--node", name, "--", "sh", "-c", "kill -9 $$", check=137)
        self.cairn("run", "--node", name, "true", check=0)

    def test_environment_of_the_program(self):
        name = self.node()
        result = self.cairn("run", "--node", name, "--exclude", "*.log", "--exclude", "tmp*", "--", "env", check=0,
                            environment={"LD_PRELOAD": ""})
        values = dict(line.split("=", 1) for line in result.stdout.splitlines() if "=" in line)
        self.assertEqual(values["CAIRN_SOCKET"], os.path.join(self.runs, name, "client.sock"))
        self.assertEqual(values["CAIRN_BUFFER"], os.path.realpath(self.work))
        self.assertEqual(values["CAIRN_EXCLUDE"], "*.log:tmp*")
        self.assertTrue(values["LD_PRELOAD"].endswith("/lib/libcairn_preload.so"), values["LD_PRELOAD"])
        self.assertTrue(values["CAIRN_RUN"].isdigit())

    def test_arguments_reach_the_program(self):
        result = self.cairn("run", "--node", self.node(), "--", "printf", "%s|", "--node", "-x", "", "a b", check=0)
        self.assertEqual(result.stdout, "--node|-x||a b|")
        self.assertEqual(self.requests()[0]["command_line"], ["printf", "%s|", "--node", "-x", "", "a b"])

    def test_io_uring_is_refused(self):
        name = self.node()
        probe = ("import ctypes, os; c = ctypes.CDLL(None, use_errno=True); "
                 "r = c.syscall(425, 1, None); print(ctypes.get_errno())")
        run = ["run", "--node", name]
        self.assertEqual(self.cairn(*run, "--", sys.executable, "-c", probe, check=0).stdout, "38\n")
        show = ["grep", "-E", "^(NoNewPrivs|Seccomp):", "/proc/self/status"]
        plain = subprocess.run(show, capture_output=True, text=True, check=True).stdout
        self.assertEqual(self.cairn(*run, "--allow-io-uring", "--", *show, check=0).stdout, plain)
        self.assertEqual(self.cairn(*run, "--", *show, check=0).stdout.split(), ["NoNewPrivs:", "1", "Seccomp:", "2"])

    def test_signals_and_descriptors_are_the_callers(self):
        name = self.node()
        show = "grep -E 'Sig(Blk|Ign)' /proc/self/status; ls /proc/self/fd"
        plain = subprocess.run(["sh", "-c", show], capture_output=True, text=True, check=True,
                               env=self.environment).stdout
        self.assertEqual(self.cairn("run", "--node", name, "--", "sh", "-c", show, check=0).stdout, plain)

    def test_trivial_run_is_silent_and_others_report(self):
        name = self.node()
        self.assertEqual(self.cairn("run", "--node", name, "--", "true", check=0).stderr, "")
        self.behave(name, report={"read_bytes": 3 << 20, "hit_bytes": {"ram": 2 << 20, "disk": 1 << 19},
                                  "miss_bytes": 1 << 19, "written_bytes": 1 << 20, "flushed_bytes": 1 << 20,
                                  "write_through_bytes": 4096, "io_seconds": 0.001,
                                  "foreign": [{"pid": 1, "command": "/opt/go/tool"}], "clients_left": 2})
        result = self.cairn("run", "--node", name, "--", "true", check=0)
        lines = result.stderr.splitlines()
        self.assertLessEqual(len(lines), 10)
        for text in ("3 MiB: ", "2 MiB from ram (67 %)", "512 KiB from disk", "1 MiB", "4 KiB of it", "tool",
                     "2 processes"):
            self.assertIn(text, result.stderr)
        self.assertEqual(self.cairn("run", "--node", name, "--no-report", "--", "true", check=0).stderr, "")

    def test_hdf5_that_is_too_old_is_named(self):
        for number in (103, 310):
            self.make_program_of_hdf5(number)
        name = self.node()
        self.behave(name, report={"read_bytes": 3 << 20})
        said = "buffered as bytes: libhdf5_serial.so.103 is HDF5 older than 1.14, which loads no connector"
        for program, options, is_said in (("a103", (), True), ("a103", ("--arrays", "off"), False),
                                          ("a310", (), False)):
            text = self.cairn("run", "--node", name, *options, "--", f"./{program}", check=0).stderr
            self.assertEqual(said in text, is_said, text)
        report = os.path.join(self.work, "report")
        self.cairn("run", "--node", name, "--report-json", report, "--", "./a103", check=0)
        with open(report, encoding="utf-8") as file:
            self.assertEqual(json.load(file)["old_hdf5"], "libhdf5_serial.so.103")
        self.behave(name, report={})
        self.assertEqual(self.cairn("run", "--node", name, "--", "./a103", check=0).stderr, "")

    def test_library_that_was_not_loaded_is_explained(self):
        name = self.node(attached=False)
        static = "/sbin/ldconfig"  # statically linked on every glibc system
        self.assertIn("never loaded", self.cairn("run", "--node", name, "--", static, "--version", check=0).stderr)
        # One that attaches to nothing because it asks for no file is no exception.
        self.assertEqual(self.cairn("run", "--node", name, "--", "true", check=0).stderr, "")

    def test_report_json(self):
        name = self.node(report={"read_bytes": 7})
        path = os.path.join(self.root, "report.json")
        self.cairn("run", "--node", name, "--report-json", path, "--", "sh", "-c", "exit 4", check=4)
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
        self.assertEqual(report["exit_status"], 4)
        self.assertEqual(report["report"]["read_bytes"], 7)
        self.assertTrue(report["stored"])
        self.refused("run", "--node", name, "--report-json", "/no/such/dir/x", "--", "true", says="--report-json")

    def test_not_stored(self):
        files = [{"path": "/pfs/a", "dirty_bytes": 4096, "error": "No space left on device"}]
        name = self.node(unstored=files)
        result = self.cairn("run", "--node", name, "--no-report", "--", "true", check=74)
        self.assertIn("NOT STORED: 1 file", result.stderr)
        self.assertIn("/pfs/a: 4 KiB left, No space left on device", result.stderr)
        self.assertIn("retry: cairn drain --node n", result.stderr)
        self.refused("drain", status=74, says="/pfs/a")
        self.refused("down", status=74, says=["stays", "--discard"])
        self.behave(name)
        self.cairn("drain", check=0)

    def test_node_lost_during_the_run(self):
        name = self.node(hang_up="run-end")
        self.refused("run", "--node", name, "--", "true", status=74, says="NOT CONFIRMED")

    def test_signal_is_forwarded_then_drained(self):
        name = self.node(drain_steps=3)
        process = self.start_run(name, "trap 'exit 9' TERM; touch started; while :; do sleep 0.01; done")
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 9, errors)
        self.assertEqual(self.commands(name)[-1], "run-end")

    def test_second_signal_ends_at_once(self):
        files = [{"path": "/pfs/a", "dirty_bytes": 4096, "error": ""}]
        name = self.node(drain_steps=1000, unstored=files)
        process = self.start_run(name, "touch started")
        self.wait_until(lambda: "run-end" in self.commands(name), "the drain began")
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        self.assertIsNone(process.poll(), "the first signal leaves time to store")
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=10)
        self.assertEqual(process.returncode, 74)
        for text in ("interrupt again", "ended at once", "4 KiB not stored in tier ram", "/pfs/a",
                     "cairn drain --node n"):
            self.assertIn(text, errors)

    def start_run(self, name, script):
        process = subprocess.Popen([CAIRN, "run", "--node", name, "--", "sh", "-c", script], cwd=self.work,
                                   env=self.environment, stderr=subprocess.PIPE, text=True)
        self.wait_until(lambda: os.path.exists(os.path.join(self.work, "started")), "the program runs")
        return process

    def test_progress_on_a_terminal_and_elsewhere(self):
        name = self.node(drain_steps=8)
        text = self.on_terminal("drain")
        self.assertRegex(text, r"\r.*cairn: \[#+-+\] +\d+ %  .*left")
        self.behave(name, drain_steps=3, step_seconds=2.6)
        result = self.cairn("drain", check=0)
        self.assertRegex(result.stderr, r"cairn: storing: 1 MiB in 1 file left, 1 MiB/s, /store/step2\n")

    def test_reservations(self):
        name = self.node()
        self.cairn("run", "--node", name, "--weight", "300", "--reserve", "2G", "--reserve", "nvme=1M", "--", "true",
                   check=0)
        begin = self.requests(name)[0]
        self.assertEqual(begin["reserve"], [{"tier": "", "bytes": 2 << 30}, {"tier": "nvme", "bytes": 1 << 20}])
        self.assertEqual(begin["weight"], 300)
        for mistake in ("much", "nvme=", "=1G", "0"):
            result = self.cairn("run", "--node", name, "--reserve", mistake, "--", "touch", "started", check=2)
            self.assertIn("not a size", result.stderr)
            self.assertIn("--reserve 2G", result.stderr)
        self.behave(name, error={"command": "run-begin", "message": "only 1 GiB can", "remedy": "ask for less"})
        result = self.cairn("run", "--node", name, "--reserve", "2G", "--", "touch", "started", check=2)
        self.assertIn("only 1 GiB can", result.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.work, "started")), "it was refused before it began")

    def test_reservations_for_files(self):
        name = self.node()
        self.cairn("set", "--node", name, "*.idx", "reserve=nvme:10G", "priority=7", check=0)
        [rule] = self.requests(name)[0]["rules"]
        self.assertEqual((rule["pattern"], rule["reserve"], rule["priority"]), ("*.idx", "nvme:10G", 7))
        for mistake in ("much", "nvme:", ":1G", "nvme=1G"):
            result = self.cairn("set", "--node", name, "*.idx", f"reserve={mistake}", check=2)
            self.assertIn("reserve=2G", result.stderr)

    def test_run_inside_a_run_joins_its_node(self):
        self.node("a")
        self.node("b")
        self.cairn("run", "--node", "a", "--", CAIRN, "run", "--", "true", check=0)
        self.assertEqual(self.commands("a"), ["run-begin", "run-begin", "run-end", "run-end"])
        result = self.cairn("run", "--node", "b", "--", CAIRN, "status", "--json", check=0)
        self.assertEqual(json.loads(result.stdout)["node"], "b")


class Nodes(CommandTest):
    def test_status_text(self):
        self.node(status={"moves": [{"from": "ram", "to": "tier1", "reason": "room", "blocks": 32, "bytes": 2 << 20}],
                          "clients": [{"slot": 1, "pid": 42, "command": "sim\x1b[2J", "run": "7"}],
                          "runs": [{"run": "7", "weight": 300, "command_line": ["sim"], "tiers": [
                              {"name": "ram", "used_bytes": 5 << 20, "share_bytes": 6 << 20,
                               "reserved_bytes": 7 << 20}]}],
                          "reservations": [{"pattern": "*.idx\x1b", "tier": "ram", "used_bytes": 1 << 20,
                                            "reserved_bytes": 9 << 20}],
                          "errors": [{"path": "/pfs/b", "message": "I/O error", "count": 3, "since_seconds": 4}]})
        text = self.cairn("status", check=0).stdout
        for expected in ("node n: ", "ram", "1 GiB", "everything is stored", "clients (1)", "/pfs/b", "I/O error",
                         "300", "5 MiB", "6 MiB", "7 MiB"):
            self.assertIn(expected, text)
        self.assertNotIn("\x1b", text)
        self.assertRegex(text, r"room reserved for files \(1\)\n.*\n\*\.idx.* +ram +1 MiB +9 MiB\n")
        self.assertRegex(text, r"moves \(1\)\n.*\nram +tier1 +room +32 +2 MiB\n")

    def test_explain_text(self):
        path = os.path.join(self.work, "data")
        with open(path, "w", encoding="utf-8") as file:
            file.write("x" * 100)
        self.node(explain={"known": True, "size": 100, "dirty_bytes": 50, "mode": "buffered", "ranges": [
            {"begin": 0, "end": 50, "tier": "ram", "state": "dirty", "since_seconds": 2, "reason": "written by 42"}],
            "ranges_truncated": False})
        text = self.cairn("explain", path, check=0).stdout
        for expected in ("100 B, 50 B of it not stored yet", "ram", "dirty", "written by 42"):
            self.assertIn(expected, text)
        self.assertEqual(self.requests()[-1]["inode"], os.stat(path).st_ino)
        self.behave("n")
        self.assertIn("not buffered on this node", self.cairn("explain", path, check=0).stdout)

    def test_down_ends_the_node_and_leaves_nothing(self):
        name = self.node()
        self.cairn("down", "--node", name, check=0)
        self.assertEqual(os.listdir(self.runs), [])

    def test_drain_of_an_ended_private_run_ends_its_node(self):
        name = self.node("run-77")
        self.assertIn("is down", self.cairn("drain", "--node", name, check=0).stderr)
        self.assertEqual(os.listdir(self.runs), [])


class RealService(CommandTest):
    """With the real node service and the real library."""

    SMALL = ["--ram", "32M", "--tier", "none"]

    def test_private_run_stores_and_leaves_nothing(self):
        result = self.cairn("run", *self.SMALL, "--", "sh", "-c", "echo hello > file; cat file", check=0)
        self.assertEqual(result.stdout, "hello\n")
        with open(os.path.join(self.work, "file"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "hello\n")
        self.assertEqual(os.listdir(self.runs), [])

    def test_private_run_that_cannot_start(self):
        path = os.path.join(self.work, "script")
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/no/such/interpreter\n")
        os.chmod(path, 0o755)
        self.refused("run", *self.SMALL, "--", "./script", status=127, says="./script")
        self.assertEqual(os.listdir(self.runs), [])

    def test_the_service_has_the_rules_of_whoever_started_it(self):
        schema = os.path.join(self.work, "rules.xml")
        with open(schema, "w", encoding="utf-8") as file:
            file.write("<rules>\n<rule name='own'><path>*.tmp</path><priority>0</priority></rule></rules>\n")
        self.cairn("up", "--name", "job", *self.SMALL, "--schema", schema, "--trigger", "on-exit",
                   "--policy", "round-robin", check=0)
        try:
            # It must not depend on the file any longer.
            os.unlink(schema)
            options = json.loads(self.cairn("config", "show", "--node", "job", "--json", check=0).stdout)
            values = {option["name"]: option["value"] for option in options}
            self.assertEqual(values["schema"], os.path.realpath(schema))
            self.assertEqual(values["flush.trigger"], "on-exit")
            self.assertEqual(values["placement.policy"], "round-robin")
            with open(os.path.join(self.runs, "job", "config.yaml"), encoding="utf-8") as file:
                self.assertIn("rules.xml:2", file.read())
        finally:
            self.cairn("down", "--node", "job", check=0)

    def test_node_for_several_programs(self):
        self.cairn("up", "--name", "job", *self.SMALL, check=0)
        try:
            self.refused("up", "--name", "job", *self.SMALL, says="already running")
            self.cairn("run", "--node", "job", "--", "sh", "-c", "echo one > file", check=0)
            result = self.cairn("run", "--node", "job", "--", "cat", "file", check=0)
            self.assertEqual(result.stdout, "one\n")
            status = json.loads(self.cairn("status", "--json", check=0).stdout)
            self.assertEqual(status["node"], "job")
            os.kill(status["service_pid"], 0)
            self.assertIn("file", self.cairn("explain", "file", check=0).stdout)
            self.assertIn("32M", self.cairn("config", "show", "--node", "job", check=0).stdout)
        finally:
            self.cairn("down", "--node", "job", check=0)
        self.assertEqual(os.listdir(self.runs), [])

    # Writes before and after its node has gone, to a file that it closes and to one that it leaves open.
    STAYS = """
import os, time
closed, left = (os.open(name, os.O_RDWR | os.O_CREAT, 0o644) for name in ("closed", "left"))
for file in (closed, left):
    os.pwrite(file, b"A" * 8192, 0)
os.fsync(closed)
open("started", "w").close()
while not os.path.exists("gone"):
    time.sleep(0.01)
for file in (closed, left):
    assert os.pwrite(file, b"B" * 8192, 8192) == 8192
os.close(closed)
os.kill(os.getpid(), 9)
"""

    def test_a_program_that_outlives_its_node_loses_nothing(self):
        for how in ("down", "signal"):
            self.cairn("up", "--name", "job", *self.SMALL, "--trigger", "on-exit", check=0)
            process = subprocess.Popen([CAIRN, "run", "--node", "job", "--", sys.executable, "-c", self.STAYS],
                                       cwd=self.work, env=self.environment, stderr=subprocess.DEVNULL)
            self.addCleanup(process.kill)
            self.wait_until(lambda: os.path.exists(os.path.join(self.work, "started")), "the program runs")
            if how == "down":
                self.cairn("down", "--node", "job", check=0)
            else:
                status = json.loads(self.cairn("status", "--node", "job", "--json", check=0).stdout)
                os.kill(status["service_pid"], signal.SIGTERM)
            pid_file = os.path.join(self.runs, "job", "node.pid")
            self.wait_until(lambda: not os.path.exists(pid_file), "the node is gone")
            with open(os.path.join(self.work, "gone"), "w", encoding="utf-8"):
                pass
            process.wait(timeout=60)
            for name in ("closed", "left"):
                with open(os.path.join(self.work, name), "rb") as file:
                    self.assertEqual(file.read(), b"A" * 8192 + b"B" * 8192, f"{name}, {how}")
            for name in ("closed", "left", "started", "gone"):
                os.unlink(os.path.join(self.work, name))


if __name__ == "__main__":
    unittest.main(verbosity=1)
