#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of step_outcome.py."""

import unittest

import step_outcome

CTEST = """67% tests passed, 1 tests failed out of 4

The following tests did not run:
\t  2 - faults_backing_errors (Skipped)

The following tests FAILED:
\t  3 - modes (Failed)
Errors while running CTest
"""


class StepOutcomeTest(unittest.TestCase):
    def counts(self, log, status=0):
        outcome = step_outcome.outcome_of(log, "step", status)
        return outcome.passed, outcome.failed, outcome.skipped

    def test_a_skipped_test_has_not_passed(self):
        self.assertEqual(self.counts(CTEST, 8), (2, 1, ["faults_backing_errors"]))
        self.assertEqual(self.counts("100% tests passed, 0 tests failed out of 3\n"), (4, 0, []))

    def test_a_skipped_step_has_not_passed(self):
        self.assertEqual(self.counts("skipped: no clang-format-19\n"), (0, 0, ["step"]))

    def test_what_a_part_of_a_step_skips_is_named(self):
        log = "traces: skipped: no traces of real programs\nskipped fsx: no cargo\nskipped programs\n12 cases ran\n"
        self.assertEqual(self.counts(log), (1, 0, ["step/traces", "step/fsx", "step/programs"]))

    def test_a_step_that_fails_fails_once_at_least(self):
        self.assertEqual(self.counts("no summary\n", 1), (0, 1, []))
        self.assertEqual(self.counts("skipped: all of it\n", 124), (0, 1, []))

    def test_only_what_is_listed_may_be_skipped(self):
        patterns = step_outcome.expected_skips("# why\nbench/traces nobody's traces are here\nprogram_* none\n")
        self.assertEqual(step_outcome.refused(["bench/traces", "program_git", "modes"], patterns), ["modes"])

    def test_an_expected_skip_needs_a_reason(self):
        with self.assertRaises(ValueError):
            step_outcome.expected_skips("modes\n")


if __name__ == "__main__":
    unittest.main()
