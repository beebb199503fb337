# SPDX-License-Identifier: Apache-2.0
"""Runs modules of PyTables' own tests, which are unittest's, and writes {test: verdict} as JSON.

    pytables_run.py REPORT MODULE ...     e.g. test_array; needs the connector that $CAIRN_EXPECT names
"""

import importlib
import json
import sys
import unittest

import expect_connector


class Verdicts(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.found = {}

    def note(self, test, verdict):
        # Tests of one name and class come in several suites; the worst of them counts.
        if self.found.get(test.id()) in (None, "passed"):
            self.found[test.id()] = verdict

    def addSuccess(self, test):
        self.note(test, "passed")

    def addError(self, test, err):
        self.note(test, "error")

    def addFailure(self, test, err):
        self.note(test, "failure")

    def addSkip(self, test, reason):
        self.note(test, "skipped")

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.note(test, "failure")


def main():
    expect_connector.need_connector()
    result = Verdicts()
    for name in sys.argv[2:]:
        importlib.import_module(f"tables.tests.{name}").suite().run(result)
    with open(sys.argv[1], "w", encoding="utf-8") as report:
        json.dump(result.found, report)


if __name__ == "__main__":
    main()
