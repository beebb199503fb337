#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of share/cairn/arrays.py: it draws the chunks of a dataset, and says in one line why it cannot."""

import json
import unittest

import picture_case

DATASET = {"name": "/a$b", "chunk": [8, 8, 8], "grid": [2, 3, 4], "cached": [[0, "ram"], [13, "nvme"], [23, "ram"]]}


def text_of(dataset):
    return json.dumps(dataset).encode()


class ArraysTest(picture_case.PictureCase):
    tool = "arrays"

    def test_without_matplotlib_one_line_says_what_to_install(self):
        self.expect_what_to_install(text_of(DATASET))

    @picture_case.needs_matplotlib
    def test_draws(self):
        for dataset in (DATASET, {**DATASET, "cached": []}, {**DATASET, "grid": [1000000, 30]},
                        {**DATASET, "grid": [1000000]}):
            self.expect_picture(text_of(dataset))

    def test_what_is_no_dataset_is_named(self):
        self.expect_refusal(b"not JSON", self.draw(b"hello"))
        for dataset, message in (([], b"not an object"), ({}, b"'grid' is no list"),
                                 ({**DATASET, "grid": [2, -1]}, b"'grid' is no number of chunks"),
                                 ({**DATASET, "grid": [0, 2]}, b"'grid' has no chunks"),
                                 ({"grid": [2]}, b"'cached' is no list"),
                                 ({**DATASET, "cached": [3]}, b"something that is no pair"),
                                 ({**DATASET, "cached": [[24, "ram"]]}, b"chunk 24 is beyond the grid")):
            self.expect_refusal(message, self.draw(text_of(dataset)))

    def test_the_last_dimension_goes_from_left_to_right(self):
        _, rows, columns, cells = picture_case.load_tool("arrays").read_dataset(text_of(DATASET))
        self.assertEqual((rows, columns), (6, 4))
        self.assertEqual(cells, [(0, 0, "ram"), (3, 1, "nvme"), (5, 3, "ram")])


if __name__ == "__main__":
    unittest.main()
