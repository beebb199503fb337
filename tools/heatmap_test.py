#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of share/cairn/heatmap.py: it draws a map, and says in one line why it cannot."""

import math
import os
import unittest

import picture_case

HEADER = b'{"name": "/data/a$b_\\ufffd", "file_bytes": 1048576, "segment_bytes": 65536, "epochs": 2}\n'
SEGMENTS = (b'{"segment": 0, "offset": 0, "bytes": 65536, "score_log2": 3.5}\n'
            b'{"segment": 7, "offset": 458752, "bytes": 65536, "score_log2": -6000.25}\n')


class HeatmapTest(picture_case.PictureCase):
    tool = "heatmap"

    def test_without_matplotlib_one_line_says_what_to_install(self):
        self.expect_what_to_install(HEADER + SEGMENTS)

    @picture_case.needs_matplotlib
    def test_draws(self):
        for lines in (HEADER + SEGMENTS, HEADER, HEADER.replace(b"1048576", b"0"),
                      HEADER.replace(b"1048576", b"281474976710656") + SEGMENTS,
                      (HEADER + SEGMENTS).replace(b"data", b"d\xff\xfeta")):
            self.expect_picture(lines)

    @picture_case.needs_matplotlib
    def test_an_output_that_cannot_be_written_is_named(self):
        self.expect_refusal(b"none/map.png: No such file or directory",
                            self.draw(HEADER, os.path.join(self.folder.name, "none", "map.png")))

    def test_bad_input_is_named_by_its_line(self):
        for lines, message in (
                (b"", b"no heat map came in"),
                (b"hello\n", b"line 1: not JSON"),
                (b"[]\n", b"line 1: not an object"),
                (b'{"name": "x"}\n', b"line 1: 'file_bytes' is not a number"),
                (HEADER.replace(b"65536", b"-1"), b"line 1: 'segment_bytes' is negative"),
                (HEADER + b'{"offset": 0, "bytes": 1, "score_log2": NaN}\n', b"line 2: 'score_log2' is not a number"),
                (HEADER + b'{"offset": 0, "bytes": 0, "score_log2": 1}\n', b"line 2: not a range of a file")):
            self.expect_refusal(message, self.draw(lines))

    def test_without_an_output_it_explains_itself(self):
        result = self.draw(HEADER, "--help")
        self.assertEqual(result.returncode, 2)
        self.assertIn(b"Usage", result.stderr)

    def test_a_column_shows_the_hottest_in_it(self):
        columns_of = picture_case.load_tool("heatmap").columns_of
        self.assertEqual(columns_of([(0, 10, 1.0), (10, 10, 5.0), (30, 10, 2.0)], 40, 2), [5.0, 2.0])
        columns = columns_of([(0, 10, 1.0), (30, 10, 2.0)], 40, 4)
        self.assertEqual([value if value == value else None for value in columns], [1.0, None, None, 2.0])
        self.assertTrue(math.isnan(columns[1]))


if __name__ == "__main__":
    unittest.main()
