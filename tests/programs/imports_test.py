#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of imports.py: what it must notice, whatever is installed on the machine."""

import unittest

import imports


class ImportsTest(unittest.TestCase):
    def setUp(self):
        self.symbols = imports.io_symbols(imports.defined_in(imports.libc_path()))
        self.reasons = imports.uncovered_list()

    def test_the_calls_that_move_bytes_are_among_the_symbols(self):
        for name in ("open64", "openat", "pread64", "writev", "fopen", "_IO_fopen", "copy_file_range", "mmap",
                     "execve"):
            self.assertIn(name, self.symbols)

    def test_a_missing_hook_is_noticed(self):
        for name in ("open64", "pread64", "fopen", "_IO_fopen", "copy_file_range", "mmap", "execve", "ioctl"):
            hooks = set(self.symbols) - {name}
            self.assertEqual(imports.uncovered(self.symbols, hooks, self.reasons), [name])

    def test_a_reason_counts_only_for_its_pattern(self):
        self.assertEqual(imports.uncovered(["glob", "open64"], set(), {"glo*": "names"}), ["open64"])

    def test_symbols_between_the_libraries_of_libc_do_not_count(self):
        self.assertNotIn("__open_nocancel", self.symbols)


if __name__ == "__main__":
    unittest.main()
