#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""h5py's own tests, without the connector and with it: nothing but two variables differs, and no verdict."""

import sys

import stage


def main():
    stage.need_plugin()
    python = stage.interpreter()
    return stage.compare_suites("h5py", lambda environment, directory: stage.pytest_verdicts(
        python, [f"--basetemp={directory}/base", "--pyargs", "h5py"], directory, environment))


if __name__ == "__main__":
    sys.exit(main())
