#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""h5py's own tests: natively, with the connector, and under `cairn run`. No verdict differs."""

import sys

import stage


def main():
    stage.need_plugin()
    python = stage.interpreter()

    def run(environment, directory, prefix):
        return stage.pytest_verdicts([*prefix, python], [f"--basetemp={directory}/base", "--pyargs", "h5py"], directory,
                                     environment)

    return stage.compare_suites("h5py", run, is_every_way=True)


if __name__ == "__main__":
    sys.exit(main())
