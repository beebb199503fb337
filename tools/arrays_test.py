#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of share/cairn/arrays.py: it draws the chunks of a dataset, and says in one line why it cannot."""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest

import sources

DRAW = os.path.join(sources.ROOT, "share", "cairn", "arrays.py")
DATASET = {"name": "/a$b", "chunk": [8, 8, 8], "grid": [2, 3, 4], "cached": [[0, "ram"], [13, "nvme"], [23, "ram"]]}


def load_tool():
    specification = importlib.util.spec_from_file_location("arrays", DRAW)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


class ArraysTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.output = os.path.join(self.folder.name, "chunks.png")

    def draw(self, dataset, path=None):
        environment = dict(os.environ, MPLCONFIGDIR=self.folder.name)
        if path:
            environment["PYTHONPATH"] = path
        data = dataset if isinstance(dataset, bytes) else json.dumps(dataset).encode()
        return subprocess.run([sys.executable, DRAW, self.output], input=data, check=False, capture_output=True,
                              env=environment)

    def test_without_matplotlib_one_line_says_what_to_install(self):
        shadow = os.path.join(self.folder.name, "shadow")
        os.mkdir(shadow)
        with open(os.path.join(shadow, "matplotlib.py"), "w", encoding="utf-8") as file:
            file.write("raise ImportError('No module named matplotlib', name='matplotlib')\n")
        result = self.draw(DATASET, path=shadow)
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr.count(b"\n"), 1)
        self.assertIn(b"install python3-matplotlib", result.stderr)
        self.assertFalse(os.path.exists(self.output))

    @unittest.skipUnless(importlib.util.find_spec("matplotlib"), "matplotlib is not installed")
    def test_draws(self):
        for dataset in (DATASET, {**DATASET, "cached": []}, {**DATASET, "grid": [1000000, 30]},
                        {**DATASET, "grid": [1000000]}):
            result = self.draw(dataset)
            self.assertEqual((result.returncode, result.stderr), (0, b""))
            with open(self.output, "rb") as file:
                self.assertEqual(file.read(8), b"\x89PNG\r\n\x1a\n")

    def test_what_is_no_dataset_is_named(self):
        for dataset, message in ((b"hello", b"not JSON"), ([], b"not an object"), ({}, b"'grid' is no list"),
                                 ({**DATASET, "grid": [2, -1]}, b"'grid' is no number of chunks"),
                                 ({**DATASET, "grid": [0, 2]}, b"'grid' has no chunks"),
                                 ({"grid": [2]}, b"'cached' is no list"),
                                 ({**DATASET, "cached": [3]}, b"something that is no pair"),
                                 ({**DATASET, "cached": [[24, "ram"]]}, b"chunk 24 is beyond the grid")):
            result = self.draw(dataset)
            self.assertEqual(result.returncode, 1)
            self.assertIn(message, result.stderr)
            self.assertEqual(result.stderr.count(b"\n"), 1)

    def test_the_last_dimension_goes_from_left_to_right(self):
        _, rows, columns, cells = load_tool().read_dataset(json.dumps(DATASET).encode())
        self.assertEqual((rows, columns), (6, 4))
        self.assertEqual(cells, [(0, 0, "ram"), (3, 1, "nvme"), (5, 3, "ram")])


if __name__ == "__main__":
    unittest.main()
