#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The `cairn` command as a user meets it: help, configuration, schemas, what it refuses and why."""
import json
import os
import re
import shutil
import stat
import subprocess
import unittest

from command_test import BUILD, ROOT, CommandTest


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
        path = os.path.join(ROOT, "docs", "configuration.md")
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
        with open(os.path.join(ROOT, "docs", "schemas.md"), encoding="utf-8") as file:
            document = file.read()
        for language in ("xml", "yaml"):
            text = re.search(rf"\n```{language}\n(.*?)\n```", document, re.DOTALL).group(1)
            self.cairn("schema", "check", self.schema(text, "example." + language), check=0)

    def test_xsd_for_editors_is_beside_the_build(self):
        xsd = os.path.join("share", "cairn", "schema.xsd")
        with open(os.path.join(BUILD, xsd), encoding="utf-8") as built:
            with open(os.path.join(ROOT, xsd), encoding="utf-8") as source:
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

    def test_a_predictor_that_is_not_there(self):
        with open(os.path.join(self.work, "cairn.yaml"), "w", encoding="utf-8") as file:
            file.write("prefetch:\n  budget: 10\n  plugin: ./none.so\n")
        self.refused("config", "show", "--config", "cairn.yaml",
                     says=["cairn.yaml:3: prefetch.plugin: plugin ", "/none.so: No such file"])


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

    def test_up_takes_the_name_as_other_commands_do(self):
        self.refused("up", "--node", self.node(), "--ram", "16M", "--tier", "none", says="already running")

    def test_private_names_are_reserved(self):
        self.refused("up", "--name", "run-1", says="run-")

    def test_other_version(self):
        name = self.node()
        self.write_node_text(name, version="99.0.0")
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

    def test_program_with_an_old_hdf5(self):
        for number, is_old in ((103, True), (200, True), (310, False), (320, False)):
            self.make_program_of_hdf5(number)
            text = self.cairn("doctor", f"./a{number}", check=0).stdout
            self.assertEqual("loads no connector" in text, is_old, text)

    def test_setuid_program(self):
        if os.geteuid() == 0:
            self.skipTest("set-user-id means nothing to root")
        for candidate in ("/usr/bin/passwd", "/bin/su", "/usr/bin/mount"):
            if os.path.exists(candidate) and os.stat(candidate).st_mode & stat.S_ISUID:
                self.assertIn("set-user-id", self.cairn("doctor", candidate, check=1).stdout)
                return
        self.skipTest("no set-user-id program here")


if __name__ == "__main__":
    unittest.main(verbosity=1)
