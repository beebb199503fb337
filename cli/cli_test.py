#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The `cairn` command as a user meets it: messages, exit statuses, signals, reports, and nothing left behind.

Runs attach to a test double of the service (testing/fake_node.py), which lets a test say what a drain does.
The last class starts the real service. CAIRN_BUILD names the build directory.
"""
import json
import os
import pty
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ.get("CAIRN_BUILD", os.path.join(HERE, "..", "build", "release"))
CAIRN = os.path.join(BUILD, "bin", "cairn")
FAKE_NODE = os.path.join(HERE, "testing", "fake_node.py")


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

    def node(self, name="n", **behaviour):
        """Starts a test double that answers as the behaviour says."""
        os.makedirs(self.runs, mode=0o700, exist_ok=True)
        directory = os.path.join(self.runs, name)
        os.mkdir(directory, 0o700)
        self.behave(name, **behaviour)
        read_end, write_end = os.pipe()
        process = subprocess.Popen([sys.executable, FAKE_NODE, "--directory", directory, "--name", name,
                                    "--ready-fd", str(write_end)], pass_fds=[write_end])
        os.close(write_end)
        self.assertEqual(os.read(read_end, 100), b"ready\n")
        os.close(read_end)
        self.nodes.append(process)
        return name

    def behave(self, name, **behaviour):
        path = os.path.join(self.runs, name, "behaviour.json")
        with open(path + ".new", "w", encoding="utf-8") as file:
            json.dump(behaviour, file)
        os.rename(path + ".new", path)

    def requests(self, name="n"):
        with open(os.path.join(self.runs, name, "requests.jsonl"), encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def config(self, text):
        path = os.path.join(self.root, "job.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def wait_until(self, condition, what):
        deadline = time.monotonic() + 20
        while not condition():
            self.assertLess(time.monotonic(), deadline, what)
            time.sleep(0.01)


class Usage(CommandTest):
    def test_every_command_has_help_with_an_example(self):
        for command in ("run", "up", "down", "status", "drain", "explain", "set", "pin", "unpin",
                        "stage-in", "stage-out", "doctor", "profile", "config", "config show",
                        "schema", "schema check", "version"):
            with self.subTest(command):
                result = self.cairn(*command.split(), "--help", check=0)
                self.assertRegex(result.stdout, r"Examples?:\n  cairn " + command.split()[0])

    def test_unknown_words_name_the_nearest(self):
        self.refused("rnu", says="did you mean `cairn run`")
        self.refused("run", "--bufer", "x", "--", "true", says=["--bufer", "did you mean --buffer"])
        self.refused("status", "--jsn", says="did you mean --json")

    def test_missing_program(self):
        self.refused("run", says="no program to run")
        self.refused("run", "--", says="no program to run")

    def test_no_command_prints_the_overview(self):
        result = self.cairn(check=2)
        self.assertIn("Usage: cairn COMMAND", result.stderr)

    def test_version(self):
        self.assertRegex(self.cairn("version", check=0).stdout, r"^cairn \d+\.\d+\.\d+\n$")


class Configuration(CommandTest):
    def test_all_mistakes_at_once_with_their_lines(self):
        path = self.config("ram:\n"
                           "  capcity: 4G\n"
                           "  huge_pages: sometimes\n"
                           "flush:\n"
                           "  streams: many\n"
                           "  dirty_high_percent: 200\n"
                           "evict:\n"
                           "  low_percent: 20\n"
                           "  high_percent: 10\n"
                           "tiers:\n"
                           "  - {name: a, directory: /does/not/exist, capacity: 1G}\n"
                           "  - {name: a, directory: /dev/shm, capacity: 1G}\n"
                           "colour: red\n")
        result = self.refused("config", "show", "--config", path, says=[
            'job.yaml:2: unknown key "capcity" in ram; did you mean "capacity"?',
            'job.yaml:3: ram.huge_pages: "sometimes"', 'job.yaml:5: flush.streams: "many"',
            "job.yaml:6: flush.dirty_high_percent: 200 is out of range", "job.yaml:9: evict.low_percent (20)",
            "job.yaml:11: tier a: directory /does/not/exist does not exist",
            "job.yaml:12: tier a: /dev/shm is on tmpfs",
            "job.yaml:12: tier a: the name is used twice", 'job.yaml:13: unknown key "colour"', "9 mistakes"])
        self.assertEqual(result.stdout, "")

    def test_broken_yaml(self):
        self.refused("config", "show", "--config", self.config("ram: {capacity: 4G\nflush: ["),
                     says=["job.yaml:", "not valid YAML"])
        self.refused("config", "show", "--config", "/does/not/exist", says="No such file")
        self.refused("config", "show", "--config", self.root, says="is a directory")

    def test_too_large(self):
        self.refused("config", "show", "--ram", "100T", says=["ram.capacity: 100 TiB is larger than", "command line"])
        self.refused("config", "show", "--tier", self.work + ":1000T", says="larger than what is free in " + self.work)

    def test_bad_tiers(self):
        self.refused("config", "show", "--tier", "/tmp", says='"/tmp" is not DIRECTORY:SIZE')
        self.refused("config", "show", "--tier", self.work + ":big", says='capacity "big"')
        self.refused("config", "show", "--tier", "none", "--tier", self.work + ":1G", says="cannot stand beside")
        self.refused("config", "show", "--tier", self.work + ":1G", "--buffer", self.work, says="lies in its directory")
        path = os.path.join(self.work, "file")
        open(path, "w", encoding="utf-8").close()
        self.refused("config", "show", "--tier", path + ":1G", says="is not a directory")

    def test_read_only_directory(self):
        if os.geteuid() == 0:
            self.skipTest("root may write everywhere")
        os.chmod(self.work, 0o500)
        self.refused("config", "show", "--tier", self.work + ":1G", cwd="/", says="you may not write in")

    def test_every_value_says_where_it_came_from(self):
        path = self.config("flush: {streams: 8}\nevict:\n  low_percent: 6\n")
        result = self.cairn("config", "show", "--json", "--config", path, "--ram", "64M", "--tier", "none",
                            environment={"CAIRN_FLUSH_DELAY_MS": "2s"}, check=0)
        options = {option["name"]: option for option in json.loads(result.stdout)}
        self.assertEqual(options["ram.capacity"], {"name": "ram.capacity", "value": "64M", "source": "command line"})
        self.assertEqual(options["flush.delay_ms"]["value"], "2000")
        self.assertEqual(options["flush.delay_ms"]["source"], "environment CAIRN_FLUSH_DELAY_MS")
        self.assertRegex(options["flush.streams"]["source"], r"job\.yaml:1$")
        self.assertRegex(options["evict.low_percent"]["source"], r"job\.yaml:3$")
        self.assertEqual(options["clients.max"]["source"], "default")

    def test_document_is_current(self):
        path = os.path.join(HERE, "..", "docs", "configuration.md")
        with open(path, encoding="utf-8") as file:
            self.assertEqual(self.cairn("config", "docs", check=0).stdout, file.read(),
                             "run `cairn config docs > docs/configuration.md`")


class Schemas(CommandTest):
    XML = "<rules>\n<rule name='a'><path>*.h5</path><mode>scratch</mode></rule>\n</rules>\n"

    def schema(self, text, name="rules.xml"):
        path = os.path.join(self.work, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return name

    def test_check(self):
        xml = self.schema(self.XML)
        yaml = self.schema("rules:\n  - {path: a, mode: scratch}\n  - {path: b, priority: 1}\n", "rules.yaml")
        result = self.cairn("schema", "check", xml, yaml, check=0)
        self.assertEqual(result.stdout, "rules.xml: 1 rule, ok\nrules.yaml: 2 rules, ok\n")
        self.assertEqual(result.stderr, "")

    def test_all_mistakes_of_all_files(self):
        good = self.schema(self.XML)
        xml = self.schema("<rules>\n<rule>\n<path>a</path>\n<mod>scratch</mod>\n<colour/></rule></rules>", "a.xml")
        yaml = self.schema("rules:\n  - path: *.h5\n", "b.yaml")
        result = self.refused("schema", "check", good, xml, yaml, "none.yaml", says=[
            "the schema has 4 mistakes", 'a.xml:4: unknown element "mod" in rule', 'did you mean "mode"?',
            'a.xml:5: unknown element "colour"', "b.yaml:2: not valid YAML", "in quotes", "none.yaml: No such file",
            "docs/schemas.md"])
        self.assertEqual(result.stdout, "rules.xml: 1 rule, ok\n")

    def test_usage(self):
        self.refused("schema", says="schema: check?")
        self.refused("schema", "chekc", says='unknown word "chekc"')
        self.refused("schema", "check", says="file is required")

    def test_examples_of_the_document_are_in_order(self):
        with open(os.path.join(HERE, "..", "docs", "schemas.md"), encoding="utf-8") as file:
            document = file.read()
        for language in ("xml", "yaml"):
            text = re.search(rf"\n```{language}\n(.*?)\n```", document, re.DOTALL).group(1)
            self.cairn("schema", "check", self.schema(text, "example." + language), check=0)

    def test_xsd_for_editors_is_beside_the_build(self):
        xsd = os.path.join("share", "cairn", "schema.xsd")
        with open(os.path.join(BUILD, xsd), encoding="utf-8") as built:
            with open(os.path.join(HERE, "..", xsd), encoding="utf-8") as source:
                self.assertEqual(built.read(), source.read())

    def test_a_node_takes_a_schema_from_each_layer(self):
        xml = self.schema(self.XML)
        show = ["config", "show", "--json", "--ram", "64M", "--tier", "none"]
        for arguments, environment in ((["--schema", xml], {}), ([], {"CAIRN_SCHEMA": xml}),
                                       (["--config", self.config("schema: rules.xml\n")], {})):
            result = self.cairn(*show, *arguments, environment=environment, check=0)
            values = {option["name"]: option["value"] for option in json.loads(result.stdout)}
            self.assertEqual(values["schema"], os.path.join(os.path.realpath(self.work), xml))

    def test_what_needs_the_node_is_checked_with_the_node(self):
        schema = self.schema("rules:\n"
                             "  - {path: a, place: {tier: rem}}\n"
                             "  - {path: b, size: {max: 65M}, place: {tier: ram, pin: true}}\n", "rules.yaml")
        self.cairn("schema", "check", schema, check=0)
        self.refused("config", "show", "--ram", "64M", "--tier", "none", "--schema", schema, says=[
            'rules.yaml:2: tier "rem" does not exist; the node has ram; did you mean "ram"?',
            "rules.yaml:3: pin: up to 65M of one file do not fit into tier ram (64M)"])

    def test_bad_choices(self):
        self.refused("config", "show", "--mode", "scrach", "--trigger", "never", "--policy", "fast",
                     "--schema", "/none", says=['buffer.mode: "scrach" is not one of', "did you mean scratch?",
                           'flush.trigger: "never"',
                           'placement.policy: "fast" is not max-bandwidth', "schema: /none: No such file"])
        self.refused("config", "show", "--policy", "./none.so", says=["placement.policy: plugin ", "No such file"])


class BadInput(CommandTest):
    def test_program_that_cannot_be_started(self):
        self.refused("run", "--", "no-such-program", status=127, says="no-such-program")
        self.refused("run", "--", "./no-such-program", status=127, says="./no-such-program")
        path = os.path.join(self.work, "data")
        with open(path, "w", encoding="utf-8") as file:
            file.write("no program\n")
        os.chmod(path, 0o644)
        self.refused("run", "--", "./data", status=126, says="./data")
        self.refused("run", "--", "/", status=126)
        self.assertFalse(os.path.exists(self.runs), "nothing may be started for a program that is not there")

    def test_exec_fails_after_the_check(self):
        path = os.path.join(self.work, "script")
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/no/such/interpreter\n")
        os.chmod(path, 0o755)
        self.refused("run", "--node", self.node(), "--", "./script", status=127, says="./script")

    def test_buffered_directory_that_does_not_exist(self):
        self.refused("run", "--node", self.node(), "--buffer", "/no/such/place", "--", "true",
                     says="buffer.directories: /no/such/place does not exist")

    def test_unknown_node(self):
        self.refused("run", "--node", "nobody", "--", "true", says=["no node named nobody", "cairn up --name nobody"])
        self.refused("status", says="no node is running")
        self.node("first")
        self.refused("status", "--node", "nobody", says="running: first")
        self.node("second")
        self.refused("status", says=["first, second", "--node"])
        self.refused("status", "--node", "a b", says="is not a node name")

    def test_node_options_cannot_change_a_running_node(self):
        name = self.node()
        self.refused("run", "--node", name, "--ram", "1G", "--", "true", says="--ram cannot change a running node")

    def test_second_node_of_the_same_name(self):
        self.refused("up", "--name", self.node(), "--ram", "16M", "--tier", "none", says="already running")

    def test_private_names_are_reserved(self):
        self.refused("up", "--name", "run-1", says="run-")

    def test_other_version(self):
        name = self.node()
        with open(os.path.join(self.runs, name, "config.yaml"), "w", encoding="utf-8") as file:
            file.write("# The resolved configuration of node n, written by cairn 99.0.0 when it was started.\n")
        self.refused("run", "--node", name, "--", "true", says=["99.0.0", "cairn down --node n"])

    def test_run_root_of_others(self):
        os.mkdir(self.runs, 0o755)
        self.refused("up", "--name", "x", "--ram", "16M", "--tier", "none", says=["open to other users", "chmod 700"])
        os.rmdir(self.runs)
        os.symlink(self.work, self.runs)
        self.refused("up", "--name", "x", "--ram", "16M", "--tier", "none", says="is not a directory")
        if os.geteuid() == 0:
            os.unlink(self.runs)
            os.mkdir(self.runs, 0o700)
            os.mkdir(os.path.join(self.runs, "theirs"))
            os.chown(os.path.join(self.runs, "theirs"), 65534, 65534)
            self.refused("status", "--node", os.path.join(self.runs, "theirs"), says="belongs to user")

    def test_run_root_too_long(self):
        self.refused("up", "--name", "x" * 40, "--ram", "16M", "--tier", "none", says="too long for a socket",
                     environment={"CAIRN_RUN_ROOT": self.runs + "/" + "y" * 60})

    def test_node_that_hangs_up(self):
        self.refused("status", "--node", self.node(hang_up="status"), says="closed the connection")
        self.behave("n", error={"command": "status", "message": "it is tired", "remedy": "let it sleep"})
        self.refused("status", says=["it is tired", "let it sleep"])

    def test_explain(self):
        self.node()
        self.refused("explain", "/no/such/file", says="/no/such/file: No such file")
        self.refused("explain", self.work, says="is not a regular file")


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
        self.assertEqual(self.requests(name)[-1]["command"], "run-end")

    def test_second_signal_ends_at_once(self):
        files = [{"path": "/pfs/a", "dirty_bytes": 4096, "error": ""}]
        name = self.node(drain_steps=1000, unstored=files)
        process = self.start_run(name, "touch started")
        self.wait_until(lambda: self.requests(name)[-1]["command"] == "run-end", "the drain began")
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
        master, slave = pty.openpty()
        process = subprocess.Popen([CAIRN, "drain"], env=self.environment, stderr=slave)
        os.close(slave)
        text = b""
        try:
            while chunk := os.read(master, 4096):
                text += chunk
        except OSError:
            pass
        os.close(master)
        self.assertEqual(process.wait(), 0)
        self.assertRegex(text.decode(), r"\r.*cairn: \[#+-+\] +\d+ %  .*left")
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
        commands = [request["command"] for request in self.requests("a")]
        self.assertEqual(commands, ["run-begin", "run-begin", "run-end", "run-end"])
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


class Doctor(CommandTest):
    def test_machine(self):
        text = self.cairn("doctor").stdout
        for subject in ("kernel", "memory", "huge pages", "memfd", "/proc", "io_uring", "open files"):
            self.assertIn(subject, text)

    def test_programs(self):
        self.assertIn("can be buffered", self.cairn("doctor", "cat", check=0).stdout)
        self.refused("doctor", "no-such-program", status=127)
        script = os.path.join(self.work, "script")
        with open(script, "w", encoding="utf-8") as file:
            file.write("#!/usr/bin/env python3\n")
        os.chmod(script, 0o755)
        self.assertRegex(self.cairn("doctor", "./script", check=0).stdout, r"./script is run by .*python3")

    def test_static_program(self):
        compiler = shutil.which("cc")
        if compiler is None:
            self.skipTest("no C compiler")
        source = os.path.join(self.work, "a.c")
        with open(source, "w", encoding="utf-8") as file:
            file.write("int main(void) { return 0; }\n")
        if subprocess.run([compiler, "-static", "-o", self.work + "/a", source], check=False,
                          capture_output=True).returncode != 0:
            self.skipTest("no static libc")
        self.assertIn("is statically linked", self.cairn("doctor", "./a", check=1).stdout)

    def test_setuid_program(self):
        if os.geteuid() == 0:
            self.skipTest("set-user-id means nothing to root")
        for candidate in ("/usr/bin/passwd", "/bin/su", "/usr/bin/mount"):
            if os.path.exists(candidate) and os.stat(candidate).st_mode & stat.S_ISUID:
                self.assertIn("set-user-id", self.cairn("doctor", candidate, check=1).stdout)
                return
        self.skipTest("no set-user-id program here")


class Profile(CommandTest):
    """Measurements are too short here to mean anything: bench/suites/profile.py says how exact they are."""

    QUICK = ["--seconds", "0.4", "--space", "8M"]

    def setUp(self):
        super().setUp()
        if subprocess.run(["stat", "-f", "-c", "%T", self.work], capture_output=True, text=True,
                          check=True).stdout.strip() == "tmpfs":
            self.skipTest(self.work + " is in memory")
        self.environment["XDG_STATE_HOME"] = os.path.join(self.root, "state")
        self.store = os.path.join(self.root, "state", "cairn", "profiles.json")

    def profile(self, *arguments, check=0, **options):
        return json.loads(self.cairn("profile", "--json", *arguments, check=check, **options).stdout)

    def test_measures_keeps_lists_and_forgets(self):
        place = self.profile(*self.QUICK, self.work)["places"][0]
        self.assertEqual(place["place"], os.path.realpath(self.work))
        self.assertTrue(place["measured"])
        for field in ("read_bandwidth", "write_bandwidth", "read_latency", "write_latency"):
            self.assertGreater(place[field], 0)
            spread = place["figures"][field]
            self.assertLessEqual(spread["minimum"], spread["median"])
            self.assertLessEqual(spread["median"], spread["maximum"])
        self.assertEqual(len(place["figures"]["cells"]), 12)
        self.assertEqual(os.listdir(self.work), [])
        listed = self.profile("--list", self.work)["places"][0]
        self.assertEqual(listed["write_bandwidth"], place["write_bandwidth"])
        self.assertRegex(listed["from"], r"^measured \d{4}-\d\d-\d\d$")
        self.assertIn("forgot 1 profile", self.cairn("profile", "--forget", self.work, check=0).stderr)
        listed = self.profile("--list", self.work)["places"][0]
        self.assertFalse(listed["measured"])
        self.assertRegex(listed["from"], "^class default: ")
        self.assertGreater(listed["read_bandwidth"], 0)

    def test_without_a_directory_memory_tiers_and_working_directory(self):
        tier = os.path.join(self.root, "tier")
        os.mkdir(tier)
        path = self.config("tiers:\n  - {name: a, directory: %s, capacity: 64M}\n" % tier)
        result = self.cairn("profile", *self.QUICK, "--config", path, check=0)
        lines = result.stdout.splitlines()
        self.assertRegex(lines[0], r"^place +class +device +size +read +write +read lat\. +write lat\. +spread +from$")
        self.assertRegex(lines[1], r"^ram +ram .*[GM]iB/s .* [nu]s .*measured 20")
        self.assertTrue(lines[2].startswith(os.path.realpath(tier)), lines[2])
        self.assertTrue(lines[3].startswith(os.path.realpath(self.work)), lines[3])
        # Both lie on one device, which is measured once.
        self.assertEqual(lines[2].split()[1:], lines[3].split()[1:])
        with open(self.store, encoding="utf-8") as file:
            self.assertEqual(len(json.load(file)["profiles"]), 2)
        self.assertEqual(result.stderr, "")

    def test_list_shows_the_machine(self):
        document = self.profile("--list")
        places = {place["place"]: place for place in document["places"]}
        self.assertEqual(document["file"], self.store)
        self.assertTrue(any(name.startswith("ram") for name in places))
        self.assertFalse(any(place["measured"] for place in document["places"]))
        self.assertFalse(os.path.exists(self.store))

    def test_a_profile_of_a_device_that_is_gone(self):
        self.profile(*self.QUICK, self.work)
        with open(self.store, encoding="utf-8") as file:
            document = json.load(file)
        device = document["profiles"][0]["device"]
        device["size_bytes"] += 4096
        device["file_system_uuid"] = "another"
        with open(self.store, "w", encoding="utf-8") as file:
            json.dump(document, file)
        # Its directory is on another device by now: the figures are not taken for this one's.
        self.assertFalse(self.profile("--list", self.work)["places"][0]["measured"])
        gone = [place for place in self.profile("--list")["places"] if place["from"].endswith("gone since")]
        self.assertEqual([place["place"] for place in gone], [os.path.realpath(self.work)])

    def test_places_that_cannot_be_measured_do_not_stop_the_others(self):
        path = os.path.join(self.root, "file")
        open(path, "w", encoding="utf-8").close()
        result = self.cairn("profile", *self.QUICK, "--json", "/no/such/place", path, "/proc", self.work, check=2)
        document = json.loads(result.stdout)
        self.assertEqual([place["place"] for place in document["places"]], [os.path.realpath(self.work)])
        self.assertEqual([failure["place"] for failure in document["failures"]],
                         ["/no/such/place", os.path.realpath(path), "/proc"])
        for text in ("/no/such/place: No such file", "create it", path + ": is not a directory", "cairn: /proc: "):
            self.assertIn(text, result.stderr)
        self.refused("profile", "--list", "/no/such/place", says="/no/such/place: No such file")

    def test_memory_and_read_only_places(self):
        if os.path.ismount("/dev/shm"):
            self.refused("profile", "/dev/shm", says=["/dev/shm: is in memory (tmpfs)", "cairn profile"])
        if os.geteuid() != 0:
            os.chmod(self.work, 0o500)
            self.refused("profile", self.work, cwd="/", says=[self.work + ": Permission denied", "may write"])

    def test_bad_options(self):
        self.refused("profile", "--seconds", "0", says="--seconds")
        self.refused("profile", "--seconds", "soon", says="--seconds")
        self.refused("profile", "--space", "1K", self.work, says=['--space: "1K"', "64M"])
        self.refused("profile", "--list", "--forget", says="exclude each other")
        self.refused("profile", "--config", "/does/not/exist", says="No such file")

    def test_store_that_is_damaged_or_cannot_be_written(self):
        os.makedirs(os.path.dirname(self.store))
        with open(self.store, "w", encoding="utf-8") as file:
            file.write('{"version": 1, "profiles": [{"device": 3}]}')
        result = self.cairn("profile", *self.QUICK, self.work, check=0)
        self.assertIn(self.store + ": profile 1: ", result.stderr)
        self.assertEqual(self.cairn("profile", "--list", self.work, check=0).stderr, "")
        result = self.cairn("profile", *self.QUICK, self.work, check=0, environment={"XDG_STATE_HOME": "/proc"})
        self.assertIn("not kept: /proc/cairn", result.stderr)
        self.assertIn(os.path.realpath(self.work), result.stdout)

    def test_interrupted_leaves_nothing(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            process = subprocess.Popen([CAIRN, "profile", "--seconds", "60", "--space", "8M", self.work],
                                       env=self.environment, stderr=subprocess.PIPE)
            self.wait_until(lambda: self.has_unnamed_file(process.pid), "the test file is open")
            process.send_signal(number)
            process.communicate(timeout=20)
            self.assertEqual(process.returncode, -number)
            self.assertEqual(os.listdir(self.work), [])

    @staticmethod
    def has_unnamed_file(pid):
        listing = subprocess.run(["ls", "-l", f"/proc/{pid}/fd"], capture_output=True, text=True, check=False)
        return "(deleted)" in listing.stdout

    def test_progress_on_a_terminal(self):
        master, slave = pty.openpty()
        process = subprocess.Popen([CAIRN, "profile", *self.QUICK, self.work], env=self.environment, stderr=slave,
                                   stdout=subprocess.DEVNULL)
        os.close(slave)
        text = b""
        try:
            while chunk := os.read(master, 4096):
                text += chunk
        except OSError:
            pass
        os.close(master)
        self.assertEqual(process.wait(), 0)
        self.assertRegex(text.decode(), r"cairn: .*: reading 1 MiB x 8 \.\.\. \d+ %")
        self.assertTrue(text.decode().endswith("\r\033[K"), "the line is removed at the end")


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


if __name__ == "__main__":
    unittest.main(verbosity=1)
