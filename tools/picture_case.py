# SPDX-License-Identifier: Apache-2.0
"""What the tests of the programs that draw for `cairn` (share/cairn) have in common."""

import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest

import sources

FOLDER = os.path.join(sources.ROOT, "share", "cairn")
needs_matplotlib = unittest.skipUnless(importlib.util.find_spec("matplotlib"), "matplotlib is not installed")


def load_tool(name):
    sys.path.insert(0, FOLDER)
    try:
        return __import__(name)
    finally:
        sys.path.remove(FOLDER)


class PictureCase(unittest.TestCase):
    tool = None  # its name

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.output = os.path.join(self.folder.name, "picture.png")

    def draw(self, data, *arguments, path=None):
        environment = dict(os.environ, MPLCONFIGDIR=self.folder.name, PYTHONDONTWRITEBYTECODE="1")
        if path:
            environment["PYTHONPATH"] = path
        return subprocess.run([sys.executable, os.path.join(FOLDER, f"{self.tool}.py"), *(arguments or (self.output,))],
                              input=data, check=False, capture_output=True, env=environment)

    def expect_picture(self, data):
        result = self.draw(data)
        self.assertEqual((result.returncode, result.stderr), (0, b""))
        with open(self.output, "rb") as file:
            self.assertEqual(file.read(8), b"\x89PNG\r\n\x1a\n")

    def expect_refusal(self, message, result):
        self.assertEqual(result.returncode, 1)
        self.assertIn(message, result.stderr)
        self.assertEqual(result.stderr.count(b"\n"), 1)
        self.assertFalse(os.path.exists(self.output))

    def expect_what_to_install(self, data):
        """The line that is printed where matplotlib is missing."""
        shadow = os.path.join(self.folder.name, "shadow")
        os.mkdir(shadow)
        with open(os.path.join(shadow, "matplotlib.py"), "w", encoding="utf-8") as file:
            file.write("raise ImportError('No module named matplotlib', name='matplotlib')\n")
        self.expect_refusal(b"install python3-matplotlib", self.draw(data, path=shadow))
