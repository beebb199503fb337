#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cairn run --report` with programs on real nodes: what the page says of them, and what holds up neither a node nor a
run: homes and stores that hang, full disks, killed services and nodes.
"""
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time
import unittest

import report_test
from command_test import BUILD, CAIRN, ROOT

sys.path.insert(0, os.path.join(ROOT, "tests"))
import scenes  # noqa: E402  pylint: disable=wrong-import-position

MIB = 1 << 20
PROGRAM = """
import os, sys, time
with open("data", "r+b", buffering=0) as file:
    for round in range(3):
        file.seek(0)
        while file.read(1 << 16):
            pass
        time.sleep(0.15)
with open("out", "wb", buffering=0) as file:
    for _ in range(64):
        file.write(bytes(1 << 16))
os.fork() or os._exit(0)
os.wait()
"""


class RunTest(report_test.ReportTest):
    def setUp(self):
        super().setUp()
        self.has_node = False

    def real_node(self):
        self.cairn("up", "--name", "n", "--ram", "16M", "--buffer", self.work, check=0)
        self.has_node = True

    def tearDown(self):
        if self.has_node:
            self.cairn("down", "--node", "n", "--discard")
        super().tearDown()


class TheStoreOfARun(RunTest):
    def test_the_measured_store_of_the_working_directory_is_known(self):
        """A private node is told of no directory: what it buffers is below the one that the run starts in."""
        def store_of_a_run():
            page = os.path.join(self.root, "page.json")
            self.cairn("run", "--ram", "16M", "--report-json", page, "--report", page + ".html", "--force", "--",
                       sys.executable, "-c", "import time; open('out', 'w').write('x' * 100000); time.sleep(0.5)",
                       check=0)
            with open(page, encoding="utf-8") as file:
                return json.load(file)["timeline"]["store"]
        self.assertFalse(store_of_a_run()["measured"])
        self.cairn("profile", "--seconds", "0.2", "--space", "8M", self.work, check=0)
        self.assertTrue(store_of_a_run()["measured"])


class RecordsThatHang(RunTest):
    def test_the_node_answers_while_the_place_of_the_records_hangs(self):
        """The new record is opened as a pipe that nobody reads, which waits as a home directory without its server."""
        self.real_node()
        record = os.path.join(self.root, "record.json")
        os.mkfifo(record + ".new")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as launcher:
            launcher.settimeout(10)
            launcher.connect(os.path.join(self.runs, "n", "control.sock"))
            with launcher.makefile("r", encoding="utf-8") as lines:
                try:
                    for request in ({"command": "run-begin", "run": "4711", "record": record},
                                    {"command": "timeline", "run": "4711"}, {"command": "run-end", "run": "4711"},
                                    {"command": "timeline", "run": "4711"}):
                        launcher.sendall((json.dumps(request) + "\n").encode())
                        while (answer := json.loads(lines.readline()))["kind"] == "progress":
                            pass
                        self.assertEqual(answer["kind"], "done", answer)
                        self.assertIn("ram", self.cairn("status", "--node", "n", check=0).stdout)
                finally:
                    with open(record + ".new", encoding="utf-8") as pipe:
                        pipe.read()
        self.assertEqual(answer["timeline"]["run"], "4711")
        self.cairn("down", "--node", "n", check=0)
        self.assertFalse(os.path.exists(record), "the record is the launcher's from the end on")

    def test_a_sampled_run_begins_while_the_store_hangs(self):
        """A thread of its own asks the store how it is, and neither the run nor the node waits for the answer."""
        program = os.path.join(BUILD, "tests", "cairn_faulty_store")
        if not os.path.exists(program):
            self.skipTest("there is no store that hangs: libfuse3 is missing")
        try:
            store = scenes.mounted(pathlib.Path(self.root), program)
        except scenes.NotHere as why:
            self.skipTest(str(why))
        try:
            self.work = str(store.path)
            self.real_node()
            store.obey("any hang")
            time.sleep(1.2)  # the kernel forgets what it knows of the directory
            self.cairn("run", "--node", "n", "--report", self.page, "--", "true", cwd=self.root, check=0)
            self.assertIn("ram", self.cairn("status", "--node", "n", cwd=self.root, check=0).stdout)
            self.assertIn("not estimated", self.text(self.by_id(self.read(), "estimate")))
        finally:
            store.obey()
            self.cairn("down", "--node", "n", "--discard", cwd=self.root)
            store.close()


@unittest.skipUnless(os.geteuid() == 0, "needs root")
class FullDisk(RunTest):
    def setUp(self):
        super().setUp()
        self.full = os.path.join(self.root, "full")
        os.mkdir(self.full)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", self.full], check=True)
        os.makedirs(os.path.join(self.full, "cairn", "runs"))
        with self.assertRaises(OSError), open(os.path.join(self.full, "rest"), "wb", buffering=0) as rest:
            while rest.write(bytes(4096)):
                pass

    def tearDown(self):
        subprocess.run(["umount", self.full], check=True)
        super().tearDown()

    def run_with(self, page):
        return self.cairn("run", "--ram", "16M", "--report", page, "--", "true", check=0).stderr

    def test_what_is_said_is_true(self):
        page = os.path.join(self.full, "run.html")
        said = self.run_with(page)
        self.assertIn(f"--report {page}: No space left on device", said)
        self.assertIn("the run is kept: `cairn report -o FILE`", said)
        self.make()
        self.refused("report", "-o", page, says=["No space left", "where there is room"])
        self.environment["XDG_STATE_HOME"] = self.full
        said = self.run_with(self.page)
        self.assertIn("not kept for `cairn report` as it ended", said)
        self.assertNotIn("the run is kept:", said)
        self.assertEqual(self.number(self.read(), "written"), 0)
        said = self.run_with(page)
        self.assertIn("there is no page of this run", said)
        self.assertNotIn("the run is kept:", said)
        self.assertEqual(sorted(os.listdir(self.full)), ["cairn", "rest"])
        self.assertEqual(os.listdir(os.path.join(self.full, "cairn", "runs")), [])


class RealRun(RunTest):
    def test_runs_of_a_second_are_kept_without_being_asked_for(self):
        read = "import os, time\nos.read(os.open('f', os.O_RDONLY), 9999)\ntime.sleep(1.05)\n"
        with open(os.path.join(self.work, "f"), "wb") as file:
            file.write(bytes(8192))
        for options in (["--no-report", "--", sys.executable, "-c", read], ["--", "true"]):
            self.cairn("run", "--ram", "16M", *options, check=0)
        self.refused("report", says=["no run is kept", "a second or longer"])
        said = self.cairn("run", "--ram", "16M", "--report-json", "r.json", "--", sys.executable, "-c", read, check=0)
        self.assertNotIn("warning", said.stderr)
        run = json.loads(self.cairn("report", "--json", check=0).stdout)
        self.assertTrue(run["ended"])
        self.assertEqual(run["timeline"]["files"][0]["path"], os.path.join(self.work, "f"))
        self.assertGreaterEqual(len(run["timeline"]["series"]["seconds"]), 2)
        self.make(run["run"])
        with open(os.path.join(self.work, "r.json"), encoding="utf-8") as file:
            self.assertNotIn("timeline", json.load(file))
        # A place that cannot be written is not worth a word here.
        self.environment["XDG_STATE_HOME"] = "/dev/null/no"
        self.assertNotIn("kept", self.cairn("run", "--ram", "16M", "--", "sleep", "1.05", check=0).stderr)

    def test_no_file_has_the_name_of_another(self):
        """Descriptors that are closed and used again at once: a file has its own name, or its device and inode."""
        sizes = {}
        for number in range(8):
            path = os.path.join(self.work, f"f{number}")
            with open(path, "wb") as file:
                file.write(bytes(4096 + number))
            sizes[path] = sizes[f"device {os.stat(path).st_dev} inode {os.stat(path).st_ino}"] = 4096 + number
        data = os.path.join(self.root, "run.json")
        program = ("import os, time\nfor n in range(8):\n fd = os.open(f'f{n}', os.O_RDONLY); os.read(fd, 9999); "
                   "os.close(fd)\ntime.sleep(0.3)")
        self.cairn("run", "--report", self.page, "--report-json", data, "--", sys.executable, "-c", program, check=0)
        with open(data, encoding="utf-8") as file:
            listed = json.load(file)["timeline"]["files"]
        named = [each for each in listed if each["path"] in sizes]
        self.assertEqual(len(named), 8, listed)
        for each in named:
            self.assertEqual(each["miss_bytes"], sizes[each["path"]], each)

    def test_the_files_of_a_run_are_its_own(self):
        """Two sampled runs on one node at a time, and one that is not sampled."""
        for name in "abc":
            with open(os.path.join(self.work, name), "wb") as file:
                file.write(bytes(8192))
        self.real_node()
        read = "import os, sys, time\nos.read(os.open(sys.argv[1], os.O_RDONLY), 9999)\ntime.sleep(0.2)\n"
        wait = read + "open('has-read', 'x')\nwhile not os.path.exists('go'): time.sleep(0.01)\n"
        first = subprocess.Popen([CAIRN, "run", "--node", "n", "--report", self.page, "--report-json", "a.json", "--",
                                  sys.executable, "-c", wait, "a"], cwd=self.work, env=self.environment,
                                 stderr=subprocess.PIPE)
        self.addCleanup(self.end, first)
        self.wait_until(lambda: os.path.exists(os.path.join(self.work, "has-read")), "the first has read")
        self.cairn("run", "--node", "n", "--report", "b.html", "--report-json", "b.json", "--", sys.executable, "-c",
                   read, "b", check=0)
        self.cairn("run", "--node", "n", "--", sys.executable, "-c", read, "c", check=0)
        with open(os.path.join(self.work, "go"), "x", encoding="utf-8"):
            pass
        self.assertEqual(first.wait(timeout=30), 0)
        for name in "ab":
            with open(os.path.join(self.work, f"{name}.json"), encoding="utf-8") as file:
                timeline = json.load(file)["timeline"]
            # The interpreter may read a file of its own in the working directory.
            own = [each["path"] for each in timeline["files"] if os.path.basename(each["path"]) in list("abc")]
            self.assertEqual(own, [os.path.join(self.work, name)], timeline["files"])
            self.assertEqual(timeline["heat"]["path"], os.path.join(self.work, name))

    def by_name(self, files):
        """On a busy machine a file of the working directory may be closed before its name was looked up."""
        names = {os.stat(os.path.join(self.work, name)).st_ino: name for name in os.listdir(self.work)}
        found = {}
        for each in files:
            inode = re.search(r"inode (\d+)", each["path"])
            name = names.get(int(inode[1])) if inode else os.path.basename(each["path"])
            found[name] = each
        return found

    def test_writes_and_fsyncs_cost_as_reads_do(self):
        """A large file that is only written, a small one, a log with fsyncs that stays open, and one that is read."""
        with open(os.path.join(self.work, "read"), "wb") as file:
            file.write(bytes(8192))
        program = ("import os, time\nread = os.open('read', os.O_RDONLY); os.read(read, 9999)\n"
                   "out = os.open('out', os.O_WRONLY | os.O_CREAT)\n"
                   "for _ in range(48): os.write(out, bytes(1 << 20))\nos.close(out)\n"
                   "small = os.open('small', os.O_WRONLY | os.O_CREAT)\n"
                   "for _ in range(50): os.write(small, b'x' * 100)\n"
                   "os.close(small)\n"
                   "log = os.open('log', os.O_RDWR | os.O_CREAT)\n"
                   "for _ in range(20): os.write(log, bytes(512)); os.fsync(log)\n"
                   "time.sleep(0.3)\n")
        self.cairn("run", "--ram", "128M", "--report", self.page, "--report-json", "r.json", "--", sys.executable, "-c",
                   program, check=0)
        with open(os.path.join(self.work, "r.json"), encoding="utf-8") as file:
            timeline = json.load(file)["timeline"]
        files = self.by_name(timeline["files"])
        self.assertEqual(files["out"]["written_bytes"], 48 * MIB, files)
        self.assertEqual(files["small"]["written_bytes"], 5000, files)
        self.assertEqual(files["log"]["fsyncs"], 20, files)
        self.assertGreater(files["log"]["fsync_seconds"], 0)
        self.assertEqual(timeline["fsyncs"], 20)
        self.assertGreater(files["out"]["write_seconds"], 0.002)
        self.assertGreater(files["read"]["read_seconds"], 0)
        self.assertEqual(files["read"]["written_bytes"], 0)
        self.assertGreaterEqual(timeline["files_written"], 3)
        cost = [each["read_seconds"] + each["write_seconds"] + each["fsync_seconds"] for each in timeline["files"]]
        self.assertEqual(cost, sorted(cost, reverse=True))
        root = self.read()
        self.assertEqual(self.column(root, "files", 9), [each["written_bytes"] for each in timeline["files"]])
        written = timeline["series"]["io_time_ns"][-1] / 1e9
        self.assertLess(sum(cost), 1.2 * written + sum(each["fsync_seconds"] for each in timeline["files"]) + 0.01)

    def test_the_page_is_text_whatever_an_argument_is(self):
        self.cairn("run", "--report", self.page, "--", "sh", "-c", "exit 0", b"\xff", check=0)
        with open(self.page, "rb") as file:
            file.read().decode("utf-8")

    def test_the_page_says_what_the_data_says(self):
        with open(os.path.join(self.work, "data"), "wb") as file:
            file.write(os.urandom(8 * MIB))
        data = os.path.join(self.root, "run.json")
        self.cairn("run", "--ram", "64M", "--report", self.page, "--report-json", data, "--", sys.executable, "-c",
                   PROGRAM, check=0)
        with open(data, encoding="utf-8") as file:
            run = json.load(file)
        root = self.read()
        series = run["timeline"]["series"]
        self.assertEqual(run["schema"], "cairn-run-1")
        self.assertTrue(run["ended"])
        # The interpreter may read a few bytes of its own.
        self.assertAlmostEqual(run["report"]["read_bytes"], 24 * MIB, delta=4096)
        self.assertEqual(run["report"]["written_bytes"], 4 * MIB)
        self.assertEqual(self.number(root, "read"), run["report"]["read_bytes"])
        self.assertEqual(self.number(root, "written"), run["report"]["written_bytes"])
        self.assertEqual(series["read_bytes"][-1], run["report"]["read_bytes"])
        self.assertEqual(series["write_bytes"][-1], run["report"]["written_bytes"])
        self.assertEqual(series["dirty_bytes"][-1], 0)
        self.assertEqual(series["flushed_bytes"][-1], 4 * MIB)
        self.assertGreaterEqual(len(series["seconds"]), 4)
        self.assertTrue(all(len(values) == len(series["seconds"]) for values in series.values()))
        self.assertEqual(sum(p["read_bytes"] for p in run["timeline"]["processes"]["list"]),
                         run["report"]["read_bytes"])
        self.assertEqual(self.column(root, "totals", 1)[0], run["report"]["read_bytes"])
        cost = self.by_name(run["timeline"]["files"])
        self.assertGreater(cost["data"]["miss_bytes"], 0)
        self.assertEqual(cost["out"]["written_bytes"], 4 * MIB)
        # The kept record is the same run, and makes the same page.
        kept = json.loads(self.cairn("report", "--json", check=0).stdout)
        self.assertEqual(kept, run)
        with open(self.page, encoding="utf-8") as file:
            first = file.read()
        self.make(run["run"])
        with open(self.page, encoding="utf-8") as file:
            self.assertEqual(file.read(), first)

    def test_what_a_killed_service_has_sampled_is_shown(self):
        program = "import time\nopen('x', 'w').write('y' * 100000)\ntime.sleep(1)"
        process = subprocess.Popen([CAIRN, "run", "--ram", "16M", "--report", self.page, "--", sys.executable, "-c",
                                    program], cwd=self.work, env=self.environment, stderr=subprocess.PIPE)
        self.addCleanup(self.end, process)
        self.wait_until(lambda: os.path.exists(os.path.join(self.work, "x")), "the program")
        status = json.loads(self.cairn("status", "--json", check=0).stdout)
        os.kill(status["service_pid"], signal.SIGKILL)
        self.assertEqual(process.wait(timeout=30), 0)
        shown = self.text(self.read())
        self.assertIn("The timeline is not complete", shown)
        self.assertIn("killed and started again", shown)
        self.assertEqual(self.number(self.read(), "written"), 100000)

    def test_a_node_that_was_killed_leaves_its_record(self):
        program = "import os, time\nopen('x', 'w').write(str(os.getpid()))\ntime.sleep(30)"
        process = subprocess.Popen([CAIRN, "run", "--ram", "16M", "--report", self.page, "--", sys.executable, "-c",
                                    program], cwd=self.work, env=self.environment, stderr=subprocess.PIPE)
        self.addCleanup(self.end, process)
        self.wait_until(lambda: os.path.exists(os.path.join(self.work, "x")) and os.path.isdir(self.records) and
                        any(n.endswith(".json") for n in os.listdir(self.records)), "a record")
        self.wait_until(lambda: self.children_of(process.pid), "the program")
        self.assertIn("runs", self.cairn("report", "--list", check=0).stdout)
        program = self.children_of(process.pid)
        process.kill()
        process.wait()
        self.assertIn("never ended", self.text(self.make(str(process.pid))))
        for child in program:
            os.kill(child, signal.SIGKILL)
        # The node stores what it has, and ends by itself.
        directory = os.path.join(self.runs, f"run-{process.pid}")
        self.wait_until(lambda: not os.path.exists(os.path.join(directory, "control.sock")), "the end of the node")
        self.wait_until(lambda: not self.writers_of(directory), "the end of its processes")

    def writers_of(self, directory):
        """Processes whose command line names the directory."""
        return [pid for pid in os.listdir("/proc") if pid.isdigit() and directory in self.command_line_of(pid)]

    def command_line_of(self, pid):
        try:
            with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
                return file.read()
        except OSError:
            return ""

    def end(self, process):
        process.kill()
        process.wait()
        process.stderr.close()

    def children_of(self, pid):
        """The program of a launcher: its node is no child of it."""
        try:
            with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as file:
                children = [int(word) for word in file.read().split()]
        except FileNotFoundError:
            return []
        names = {}
        for child in children:
            with open(f"/proc/{child}/comm", encoding="utf-8") as file:
                names[child] = file.read().strip()
        return [child for child, name in names.items() if name.startswith("python")]


if __name__ == "__main__":
    unittest.main()
