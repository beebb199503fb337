#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""h5py's own tests: natively, and with the file driver and a node. No verdict differs."""

import sys

import stage
from driver import Stage


def main():
    stage.need_plugin()
    python = stage.interpreter()
    with Stage(python) as scene:
        verdicts = {}
        for way, directory, variables in (
                ("natively", scene.native, stage.environment(connector=False, plugin_path=False)),
                ("with the driver", scene.directory, scene.variables())):
            variables |= {"TMPDIR": str(directory), "PYTHONPATH": str(stage.HERE), "CAIRN_EXPECT": "native",
                          "CAIRN_EXPECT_OF": "h5py"}
            verdicts[way] = stage.pytest_verdicts(
                [python], [f"--basetemp={directory}/base", "--pyargs", "h5py"], directory, variables)
        opens = scene.status()["counters"]["opens"]
    assert opens > 1000, f"the node has seen {opens} opens: the driver was not in use"
    native, cairn = verdicts.values()
    differing = sorted(test for test in native.keys() | cairn.keys() if native.get(test) != cairn.get(test))
    for test in differing:
        print(f"{test}: {native.get(test)} natively, {cairn.get(test)} with the driver")
    print(f"{len(cairn)} tests, {len(differing)} differ")
    return 1 if differing or len(cairn) < 500 else 0


if __name__ == "__main__":
    sys.exit(main())
