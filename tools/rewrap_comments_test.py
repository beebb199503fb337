#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of rewrap_comments.py."""

import unittest

from rewrap_comments import WIDTH, rewrap

LONG = "word " * 25 + "end."


class RewrapCommentsTest(unittest.TestCase):
    def test_a_wide_paragraph_is_rewrapped_with_its_neighbours(self):
        result = rewrap(["  // " + LONG, "  // And more.", "  int a;"])
        self.assertTrue(all(len(line) <= WIDTH for line in result))
        self.assertEqual(len(result), 3)
        self.assertIn("end. And more.", result[1])

    def test_a_numbered_item_hangs_and_does_not_swallow_the_next(self):
        result = rewrap(["//  1. " + LONG, "//  2. Short."])
        self.assertTrue(result[0].startswith("//  1. word"))
        self.assertTrue(result[1].startswith("//     word"))
        self.assertEqual(result[2], "//  2. Short.")

    def test_lines_within_the_limit_are_left_alone(self):
        lines = ["// One.", "// Two.", "//", "//   example();", "int a;  // three"]
        self.assertEqual(rewrap(lines), lines)

    def test_the_licence_and_labelled_lines_stand_alone(self):
        lines = ["// SPDX-License-Identifier: Apache-2.0", "// " + LONG, "// Thread safety: none."]
        result = rewrap(lines)
        self.assertEqual(len(result), 4)
        self.assertEqual((result[0], result[3]), (lines[0], lines[2]))

    def test_tables_are_left_alone(self):
        lines = ["//   from     to      " + "x  " * 40, "//   free     -       -"]
        self.assertEqual(rewrap(lines), lines)

    def test_a_wide_trailing_comment_moves_above(self):
        result = rewrap(["  int count;  // " + LONG, "  int size;"])
        self.assertTrue(result[0].startswith("  // word"))
        self.assertEqual(result[-2:], ["  int count;", "  int size;"])


if __name__ == "__main__":
    unittest.main()
