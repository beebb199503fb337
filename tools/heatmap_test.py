#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of share/cairn/heatmap.py: it draws a map, and says in one line why it cannot."""

import importlib.util
import math
import os
import subprocess
import sys
import tempfile
import unittest

import sources

DRAW = os.path.join(sources.ROOT, "share", "cairn", "heatmap.py")
HEADER = '{"name": "/data/a$b_\\ufffd", "file_bytes": 1048576, "segment_bytes": 65536, "epochs": 2}\n'
SEGMENTS = ('{"segment": 0, "offset": 0, "bytes": 65536, "score_log2": 3.5}\n'
            '{"segment": 7, "offset": 458752, "bytes": 65536, "score_log2": -6000.25}\n')


def load_tool():
    specification = importlib.util.spec_from_file_location("heatmap", DRAW)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


class HeatmapTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.output = os.path.join(self.folder.name, "map.png")

    def draw(self, lines, *arguments, path=None):
        environment = dict(os.environ, MPLCONFIGDIR=self.folder.name)
        if path:
            environment["PYTHONPATH"] = path
        data = lines if isinstance(lines, bytes) else lines.encode()
        return subprocess.run([sys.executable, DRAW, *(arguments or (self.output,))], input=data, check=False,
                              capture_output=True, env=environment)

    def test_without_matplotlib_one_line_says_what_to_install(self):
        os.mkdir(os.path.join(self.folder.name, "shadow"))
        with open(os.path.join(self.folder.name, "shadow", "matplotlib.py"), "w", encoding="utf-8") as file:
            file.write("raise ImportError('No module named matplotlib', name='matplotlib')\n")
        result = self.draw(HEADER + SEGMENTS, path=os.path.join(self.folder.name, "shadow"))
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr.count(b"\n"), 1)
        self.assertIn(b"install python3-matplotlib", result.stderr)
        self.assertFalse(os.path.exists(self.output))

    @unittest.skipUnless(importlib.util.find_spec("matplotlib"), "matplotlib is not installed")
    def test_draws(self):
        for lines in (HEADER + SEGMENTS, HEADER, HEADER.replace("1048576", "0"),
                      HEADER.replace("1048576", "281474976710656") + SEGMENTS,
                      (HEADER + SEGMENTS).encode().replace(b"data", b"d\xff\xfeta")):
            result = self.draw(lines)
            self.assertEqual((result.returncode, result.stderr), (0, b""))
            with open(self.output, "rb") as file:
                self.assertEqual(file.read(8), b"\x89PNG\r\n\x1a\n")

    @unittest.skipUnless(importlib.util.find_spec("matplotlib"), "matplotlib is not installed")
    def test_an_output_that_cannot_be_written_is_named(self):
        result = self.draw(HEADER, os.path.join(self.folder.name, "none", "map.png"))
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"none/map.png: No such file or directory", result.stderr)
        self.assertEqual(result.stderr.count(b"\n"), 1)

    def test_bad_input_is_named_by_its_line(self):
        for lines, message in (
                ("", b"no heat map came in"),
                ("hello\n", b"line 1: not JSON"),
                ("[]\n", b"line 1: not an object"),
                ('{"name": "x"}\n', b"line 1: 'file_bytes' is not a number"),
                (HEADER.replace("65536", "-1"), b"line 1: 'segment_bytes' is negative"),
                (HEADER + '{"offset": 0, "bytes": 1, "score_log2": NaN}\n', b"line 2: 'score_log2' is not a number"),
                (HEADER + '{"offset": 0, "bytes": 0, "score_log2": 1}\n', b"line 2: not a range of a file")):
            result = self.draw(lines)
            self.assertEqual(result.returncode, 1)
            self.assertIn(message, result.stderr)
            self.assertEqual(result.stderr.count(b"\n"), 1)

    def test_without_an_output_it_explains_itself(self):
        result = self.draw(HEADER, "--help")
        self.assertEqual(result.returncode, 2)
        self.assertIn(b"Usage", result.stderr)

    def test_a_column_shows_the_hottest_in_it(self):
        columns = load_tool().columns_of([(0, 10, 1.0), (10, 10, 5.0), (30, 10, 2.0)], 40, 2)
        self.assertEqual(columns, [5.0, 2.0])
        columns = load_tool().columns_of([(0, 10, 1.0), (30, 10, 2.0)], 40, 4)
        self.assertEqual([value if value == value else None for value in columns], [1.0, None, None, 2.0])
        self.assertTrue(math.isnan(columns[1]))


if __name__ == "__main__":
    unittest.main()
