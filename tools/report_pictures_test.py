#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of share/cairn/report.py: it draws each chart by its id, and says in one line why it cannot."""

import json
import os
import unittest

import picture_case

CHART = {"id": "reads", "title": "Reads of $x_y$: by where", "unit": "bytes/s", "stacked": True, "seconds": [0, 1, 2.5],
         "program_end": 2, "lines": [{"name": "from ram", "colour": 0, "values": [0, 5e6, 1e6]},
                                     {"name": "from the store", "colour": 3, "values": [0, 1e6, 0]}]}
HEAT = {"id": "heat", "title": "Heat of /data/a$b_", "file_bytes": 1 << 20, "cells": [None, -3.5, 0.0]}


def lines_of(*charts):
    return "".join(json.dumps(chart) + "\n" for chart in charts).encode()


class ReportPicturesTest(picture_case.PictureCase):
    tool = "report"

    def setUp(self):
        super().setUp()
        self.output = os.path.join(self.folder.name, "pictures")
        os.mkdir(self.output)

    def expect_refusal(self, message, result):
        self.assertEqual(os.listdir(self.output), [])
        os.rmdir(self.output)
        super().expect_refusal(message, result)
        os.mkdir(self.output)

    @picture_case.needs_matplotlib
    def test_each_chart_is_a_picture(self):
        charts = (CHART, {**CHART, "id": "levels", "unit": "bytes", "stacked": False, "program_end": -1},
                  {**CHART, "id": "hits", "unit": "percent"}, {**CHART, "id": "moves", "unit": "1/s"}, HEAT)
        result = self.draw(lines_of(*charts))
        self.assertEqual((result.returncode, result.stderr), (0, b""))
        self.assertEqual(sorted(os.listdir(self.output)), sorted(f"{chart['id']}.png" for chart in charts))
        for name in os.listdir(self.output):
            with open(os.path.join(self.output, name), "rb") as file:
                self.assertEqual(file.read(8), b"\x89PNG\r\n\x1a\n")

    def test_without_matplotlib_one_line_says_what_to_install(self):
        self.expect_what_to_install(lines_of(CHART))

    def test_bad_input_is_named_by_its_line(self):
        for data, message in ((b"", b"no chart came in"), (b"hello\n", b"line 1: no chart"),
                              (lines_of(CHART, {**CHART, "id": "../x"}), b"line 2: no chart: the id '../x'"),
                              (lines_of({**CHART, "seconds": [0]}), b"unequal length"),
                              (lines_of({**CHART, "unit": "miles"}), b"unknown unit")):
            self.expect_refusal(message, self.draw(data))


if __name__ == "__main__":
    unittest.main()
