#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""HDF5's own tests of what a VOL connector has to do (h5_api_test of HDF5 1.14): natively, with the connector, and
under `cairn run`. No verdict differs."""

import os
import re
import shutil
import sys

import stage
import under_cairn

# "Testing H5Fcreate                                    PASSED", with the parts of a test below it.
VERDICT = re.compile(r"^ *Testing (.+?) *(PASSED|\*FAILED\*|-SKIP-)$", re.M)


def main():
    stage.need_plugin()
    # One HDF5 is enough for these tests and those of parallel reads.
    folder = stage.made_hdf5("mpich" if shutil.which("mpicc.mpich") else None)
    tests = folder / "h5_api_test"

    def run(environment, directory, prefix):
        # The loader writes down what it loads, each process into a file of its own.
        loads = directory / "loads"
        loads.mkdir()
        outcome = under_cairn.execute([*prefix, tests], directory, stage.SUITE_SECONDS, {
            **environment, "LD_LIBRARY_PATH": str(folder), "LD_DEBUG": "files", "LD_DEBUG_OUTPUT": str(loads / "of")})
        loaded = any(stage.PLUGIN.name in text.read_text() for text in loads.iterdir())
        assert loaded == (environment["CAIRN_EXPECT"] == "cairn"), f"the connector is loaded: {loaded}"
        verdicts = {}
        for name, verdict in VERDICT.findall(outcome.output):
            # Different parts have the same name.
            number = sum(1 for known in verdicts if known[0] == name)
            verdicts[name, number] = verdict
        if outcome.timed_out or len(verdicts) < 100:
            print(outcome.output[-3000:], outcome.errors[-3000:], sep="\n")
        return verdicts

    return stage.compare_suites("h5_api_test", run)


if __name__ == "__main__":
    os.umask(0o022)
    sys.exit(main())
