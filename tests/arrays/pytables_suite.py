#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTables' own tests: natively, with the connector, and under `cairn run`. No verdict differs.

Left out are the modules that take minutes without Cairn.
"""

import json
import sys

import stage
import under_cairn

MODULES = ("array", "carray", "vlarray", "create", "indexes", "nestedtypes", "attributes", "links", "tree", "types")


def main():
    stage.need_plugin()
    python = stage.interpreter()

    def run(environment, directory, prefix):
        report = directory / "report.json"
        outcome = under_cairn.execute(
            [*prefix, python, "-W", "ignore", stage.HERE / "pytables_run.py", report,
             *(f"test_{module}" for module in MODULES)], directory, stage.SUITE_SECONDS, environment)
        if outcome.timed_out or not report.exists():
            print(outcome, outcome.output[-3000:], outcome.errors[-3000:], sep="\n")
            return {}
        return json.loads(report.read_text())

    return stage.compare_suites("tables", run)


if __name__ == "__main__":
    sys.exit(main())
