#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cairn run --node` without the library of all commands, which must not make a difference that a user can see.

bin/cairn carries out plain runs itself and opens lib/cairn/commands.so for all else (cli/run/plain_run.h). A variable
that sets an option, even to its default, makes a run take the second way.
"""
import glob
import os
import shutil
import subprocess
import unittest

import run_test
from command_test import BUILD, CAIRN, CommandTest

THE_OTHER_WAY = {"CAIRN_REPORT": "on"}


class RunsByTheLibraryOfAllCommands(run_test.Run):
    """Every test of runs once more."""

    def setUp(self):
        super().setUp()
        self.environment.update(THE_OTHER_WAY)


class PlainRun(CommandTest):
    def opens_commands(self, *arguments, program=CAIRN, **environment):
        """Whether the command, which succeeds, opens the library of all commands."""
        traces = os.path.join(self.root, "opened")
        os.makedirs(traces)
        said = {"LD_DEBUG": "files", "LD_DEBUG_OUTPUT": os.path.join(traces, "of")}
        result = subprocess.run([program, *arguments], cwd=self.work, env={**self.environment, **said, **environment},
                                capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        texts = []
        for path in glob.glob(traces + "/*"):
            with open(path, encoding="utf-8") as file:
                texts.append(file.read())
        shutil.rmtree(traces)
        self.assertTrue(any("libc.so" in text for text in texts))
        return any("commands.so" in text for text in texts)

    def test_what_scripts_write_opens_no_commands(self):
        name = self.node()
        for flags in ([], ["--no-report"], ["--buffer", self.work, "--exclude", "*.log"], ["--buffer", "."]):
            self.assertFalse(self.opens_commands("run", "--node", name, *flags, "--", "true"), flags)
        self.assertFalse(self.opens_commands("run", "--node", name, "true"))
        self.assertFalse(self.opens_commands("run", "--node", name, "true", CAIRN_PREFETCH_REMEMBER="none"))
        self.assertFalse(self.opens_commands("run", "--node", os.path.join(self.runs, name), "--", "true"))

    def test_the_command_brings_libc_alone(self):
        """Every library more, and the locales of libstdc++, cost each run some pages and many symbols."""
        cache = os.path.join(BUILD, "CMakeCache.txt")
        if os.path.exists(cache):
            with open(cache, encoding="utf-8") as file:
                if "CMAKE_BUILD_TYPE:STRING=Release\n" not in file.read():
                    self.skipTest("only an optimised build leaves out what it does not call")
        listed = subprocess.run([CAIRN], env={**self.environment, "LD_TRACE_LOADED_OBJECTS": "1"}, capture_output=True,
                                text=True, check=True).stdout
        names = {os.path.basename(line.split()[0]).split(".so")[0] for line in listed.splitlines()}
        self.assertIn("libc", names)
        self.assertLessEqual({name for name in names if not name.startswith(("ld-linux", "linux-"))}, {"libc"})
        with open(CAIRN, "rb") as file:
            self.assertFalse(b"_ZNSt6locale7classicEv" in file.read(), "the locales of libstdc++ are linked")

    def test_what_is_not_plain_opens_them(self):
        name = self.node()
        self.assertTrue(self.opens_commands("version"))
        self.assertTrue(self.opens_commands("run", "--node", name, "--", "true", **THE_OTHER_WAY))
        for flags in (["--mode", "bypass"], ["--verbose"], ["--buffer=" + self.work]):
            self.assertTrue(self.opens_commands("run", "--node", name, *flags, "--", "true"), flags)
        self.write_node_text(name, directories=[self.work])
        self.assertTrue(self.opens_commands("run", "--node", name, "--", "true"))
        # The run's own directories replace those of the node.
        self.assertFalse(self.opens_commands("run", "--node", name, "--buffer", self.work, "--", "true"))

    def test_mistakes_and_their_messages_are_the_same(self):
        name = self.node()
        data = os.path.join(self.work, "data")
        with open(data, "w", encoding="utf-8") as file:
            file.write("#!/no/such/interpreter\n")
        node = ["run", "--node", name]
        mistakes = [[*node, "--", "no-such-program"], [*node, "--", "./data"], [*node, "--", "/"], [*node, "--", ""],
                    node, [*node, "--"], ["run", "--node"],
                    ["run", "--node", "nobody", "--", "true"], ["run", "--node", "a b", "--", "true"],
                    [*node, "--node", name, "--", "true"], [*node, "--bufer", "x", "--", "true"],
                    [*node, "--buffer", "--", "true"], [*node, "--buffer", "/no/such/place", "--", "true"],
                    [*node, "--buffer", data, "--", "true"], [*node, "--buffer", "/proc", "--", "true"],
                    [*node, "--ram", "1G", "--", "true"],
                    [*node, "--report-json", "/no/such/dir/x", "--", "true"],
                    ["run", "--node", name, "--buffer", "/no/such/place", "--", "no-such-program"]]
        self.same_both_ways(mistakes)
        self.write_node_text(name, version="99.0.0")
        self.same_both_ways([[*node, "--", "true"]])
        self.write_node_text(name)
        os.chmod(data, 0o755)
        self.same_both_ways([[*node, "--", "./data"]], begins=True)

    def same_both_ways(self, mistakes, begins=False):
        for arguments in mistakes:
            plain = self.cairn(*arguments)
            other = self.cairn(*arguments, environment=THE_OTHER_WAY)
            self.assertEqual((plain.returncode, plain.stdout, plain.stderr),
                             (other.returncode, other.stdout, other.stderr), arguments)
            self.assertIn(plain.returncode, (2, 126, 127), arguments)
        if begins:
            self.wait_until(lambda: "run-begin" in self.commands(), "the node hears of a run that begins")
        else:
            self.assertEqual(self.commands(), [])

    def test_the_node_hears_the_same(self):
        name = self.node()
        for environment in ({}, THE_OTHER_WAY):
            self.cairn("run", "--node", name, "--buffer", self.work, "--no-report", "--", "printf", "a b", check=0,
                       environment=environment)
        begin, end, other_begin, other_end = self.requests()
        self.assertEqual({**begin, "run": ""}, {**other_begin, "run": ""})
        self.assertEqual({**end, "run": ""}, {**other_end, "run": ""})

    def test_through_a_link_and_by_path(self):
        name = self.node()
        elsewhere = os.path.join(self.root, "elsewhere")
        os.mkdir(elsewhere)
        os.symlink(CAIRN, os.path.join(elsewhere, "cairn"))
        for arguments in (["version"], ["run", "--node", name, "--", "true"]):
            self.assertEqual(self.opens_commands(*arguments, program=os.path.join(elsewhere, "cairn")),
                             arguments == ["version"])
            result = subprocess.run(["/usr/bin/env", "cairn", *arguments], check=False, cwd=self.work,
                                    env={**self.environment, "PATH": elsewhere + ":" + os.environ["PATH"]},
                                    capture_output=True)
            self.assertEqual(result.returncode, 0)

    def test_an_installation_without_the_commands_says_so(self):
        name = self.node()
        for directory in ("bin", "lib"):
            os.mkdir(os.path.join(self.root, directory))
        copy = shutil.copy(CAIRN, os.path.join(self.root, "bin"))
        os.symlink(os.path.join(BUILD, "lib/libcairn_preload.so"), os.path.join(self.root, "lib/libcairn_preload.so"))
        self.assertFalse(self.opens_commands("run", "--node", name, "--", "true", program=copy))
        result = subprocess.run([copy, "version"], capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 2)
        self.assertIn("cairn: the commands cannot be loaded", result.stderr)
        self.assertIn("lib/cairn/commands.so", result.stderr)
        self.assertIn("install Cairn again", result.stderr)


if __name__ == "__main__":
    unittest.main()
