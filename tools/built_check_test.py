#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of built_check.py."""

import unittest

import built_check


class BuiltCheckTest(unittest.TestCase):
    def test_a_source_without_a_target_is_caught(self):
        paths = ["src/base/a.cc", "src/base/a_test.cc", "src/base/a.h", "bench/b.cc"]
        self.assertEqual(built_check.unbuilt(paths, {"src/base/a.cc"}), ["src/base/a_test.cc"])


if __name__ == "__main__":
    unittest.main()
