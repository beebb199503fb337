#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""More dirty files than the node can hold descriptors of: what does not fit is written through, nothing is lost.

    few_descriptors.py [--files 3000]
"""

import argparse
import os
import resource
import sys
import textwrap
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import under_cairn  # noqa: E402

DESCRIPTORS = 600


def content(number):
    return (b"file %d " % number) * (1 + number % 700)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=3000)
    options = parser.parse_args()
    if not under_cairn.have_cairn():
        print(f"skipped: {under_cairn.CAIRN} is not built")
        return under_cairn.SKIPPED
    work = under_cairn.work_directory("few-descriptors")
    directory = work / "t"
    directory.mkdir()
    script = work / "program.py"
    script.write_text(textwrap.dedent(f"""
        for number in range({options.files}):
            with open(f"f{{number}}", "wb") as file:
                file.write((b"file %d " % number) * (1 + number % 700))
        """))
    # No periodic write-back while the program runs: every file stays dirty that can.
    config = work / "cairn.yaml"
    config.write_text("flush:\n  delay_ms: 60000\n")
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
    if os.geteuid() == 0:
        # The node would raise its limit otherwise.
        command = ["setpriv", "--bounding-set", "-sys_resource", "--inh-caps", "-sys_resource"]
    else:
        command = []
    command += under_cairn.cairn_command([sys.executable, script], directory, ram="256M",
                                         options=["--config", str(config)])
    outcome = under_cairn.execute(command, directory, 200)
    problem = None
    if outcome.status != 0 or outcome.timed_out:
        problem = f"{outcome}: {outcome.errors[-800:]}"
    else:
        wrong = [n for n in range(options.files) if (directory / f"f{n}").read_bytes() != content(n)]
        if wrong:
            problem = f"{len(wrong)} of {options.files} files have other contents, the first is f{wrong[0]}"
    if problem:
        print(f"FAILED, kept {work}: {problem}")
        return 1
    under_cairn.remove(work)
    print(f"passed: {options.files} files with {DESCRIPTORS} descriptors")
    return 0


if __name__ == "__main__":
    sys.exit(main())
