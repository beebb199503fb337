#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of failed_tests.py."""

import unittest

import failed_tests

LOG = """\
      Start 58: arrays_driver
      Start 59: arrays_scenes
 1/4 Test #59: arrays_scenes ....................   Passed    3.10 sec
      Start 60: suite_stress_ng
 2/4 Test #58: arrays_driver ....................***Failed   12.00 sec
the scene
Traceback (most recent call last):

AssertionError: 3 is not 4
 3/4 Test #60: suite_stress_ng ..................***Skipped   0.10 sec
no stress-ng here
 4/4 Test #61: arrays_seen ......................***Timeout 600.00 sec
waiting

50% tests passed, 2 tests failed out of 4
"""


class FailedTests(unittest.TestCase):
    def test_says_what_each_failed_test_said(self):
        self.assertEqual(failed_tests.outputs_of_failed(LOG), [
            ("arrays_driver: Failed   12.00 sec",
             ["the scene", "Traceback (most recent call last):", "AssertionError: 3 is not 4"]),
            ("arrays_seen: Timeout 600.00 sec", ["waiting"]),
        ])

    def test_a_log_of_something_else_has_no_failed_test(self):
        self.assertEqual(failed_tests.outputs_of_failed("error: no such file\n"), [])


if __name__ == "__main__":
    unittest.main()
