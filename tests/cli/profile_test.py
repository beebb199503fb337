#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cairn profile` as a user meets it: what it measures, keeps, lists and refuses."""
import importlib.util
import json
import os
import signal
import subprocess
import sys
import unittest

from command_test import CAIRN, CommandTest


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

    def journal(self):
        """Finished experiments that the only journal has, or nothing before there is one."""
        state = os.path.dirname(self.store)
        names = [name for name in os.listdir(state) if name.startswith("training-")] if os.path.isdir(state) else []
        if not names:
            return None, []
        with open(os.path.join(state, names[0]), encoding="utf-8") as file:
            return file.name, file.read().split("\n")[1:-1]

    def test_trains_is_killed_and_goes_on(self):
        train = ["profile", "--train", "--minutes", "0.4", "--space", "16M", self.work]
        for number, enough in ((signal.SIGKILL, 5), (signal.SIGINT, 24)):
            process = subprocess.Popen([CAIRN, *train], env=self.environment, stderr=subprocess.PIPE, text=True)
            self.wait_until(lambda least=enough: len(self.journal()[1]) >= least, "some experiments are finished")
            process.send_signal(number)
            stderr = process.communicate(timeout=20)[1]
            self.assertEqual(process.returncode, -number, stderr)
            self.assertEqual(os.listdir(self.work), [])
        self.assertIn("the same command goes on", stderr)
        file, kept = self.journal()
        train[3] = "0.1"
        result = self.cairn(*train, check=0)
        self.assertIn(f"going on with {len(kept)} finished experiments of {file}", result.stderr)
        self.assertEqual(self.journal()[1][:len(kept)], kept)
        for access in ("reads", "writes"):
            self.assertRegex(result.stdout, rf"(?m)^{access}, \d+ experiments\nin use: (regression|physical)$")
        # On a busy machine a few experiments may be all, and the regression has too many terms for them.
        self.assertRegex(result.stdout, r"(?m)^physical: K = \d+, .* R2 .*, median relative error .* %, "
                         r"90 % within x\d+\.\d\d$")
        if "\nregression: K = " in result.stdout:
            self.assertIn("(Intercept)", result.stdout)
        self.assertRegex(result.stdout, r"(?m)^trained with x1 = 1 to \d+, x3 = ")
        picture = os.path.join(self.root, "fit.png")
        can_draw = importlib.util.find_spec("matplotlib") is not None
        python = {"PATH": os.path.dirname(sys.executable) + os.pathsep + self.environment.get("PATH", "")}
        result = self.cairn("profile", "--train", "--minutes", "0.01", "--json", "--png", picture, self.work,
                            environment=python, check=0 if can_draw else 2)
        if can_draw:
            with open(picture, "rb") as drawn:
                self.assertEqual(drawn.read(8), b"\x89PNG\r\n\x1a\n")
        else:
            self.assertIn("matplotlib is missing: install", result.stderr)
        document = json.loads(result.stdout)
        self.assertEqual(document["trainings"][0]["file"], file)
        self.assertEqual([model["access"] for model in document["trainings"][0]["models"]], ["read", "write"])
        with open(file, "w", encoding="utf-8") as journal:
            journal.write('{"cairn_training": 2}\n')
        self.refused(*train, says=["another version of Cairn", "remove " + file])

    def test_bad_options_of_training(self):
        for minutes in ("0", "-1", "nan", "soon", "1e9"):
            self.refused("profile", "--train", "--minutes=" + minutes, says=f'--minutes: "{minutes}"')
        self.refused("profile", "--train", "--list", says="--train and --list exclude each other")
        self.refused("profile", "--train", "--forget", says="--train and --forget exclude each other")
        self.refused("profile", "--minutes", "1", says="--train")
        self.refused("profile", "--png", "fit.png", says="give --train, too")
        self.refused("profile", "--train", "/no/such/place", says=["/no/such/place: No such file", "create it"])
        self.refused("profile", "--train", "/proc", says="cairn: /proc: ")
        blocked = os.path.join(self.root, "no-directory")
        with open(blocked, "w", encoding="utf-8"):
            pass
        self.refused("profile", "--train", self.work, environment={"XDG_STATE_HOME": blocked},
                     says=[blocked, "a training is kept there; set XDG_STATE_HOME"])
        self.assertEqual(self.journal(), (None, []), "what cannot be trained has no journal")

    @staticmethod
    def has_unnamed_file(pid):
        listing = subprocess.run(["ls", "-l", f"/proc/{pid}/fd"], capture_output=True, text=True, check=False)
        return "(deleted)" in listing.stdout

    def test_progress_on_a_terminal(self):
        text = self.on_terminal("profile", *self.QUICK, self.work)
        self.assertRegex(text, r"cairn: .*: reading 1 MiB x 8 \.\.\. \d+ %")
        self.assertTrue(text.endswith("\r\033[K"), "the line is removed at the end")


if __name__ == "__main__":
    unittest.main(verbosity=1)
