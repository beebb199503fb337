#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A library that wraps MPICH and quotes its version, but has other handles, is left alone."""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import stage  # noqa: E402
import under_cairn  # noqa: E402


def main():
    if not under_cairn.have_cairn():
        stage.skip(f"{under_cairn.CAIRN} is not built")
    work = under_cairn.work_directory("mpi-wrapped")
    library, program, source = work / "libwrapped.so", work / "wrapped", HERE / "wrapped_mpi.cc"
    subprocess.run(["c++", "-O1", "-shared", "-fPIC", source, "-o", library], check=True)
    subprocess.run(["c++", "-O1", "-DPROGRAM", source, "-o", program, library, f"-Wl,-rpath,{work}"], check=True)
    # The launcher's word for one rank on this node.
    variables = under_cairn.clean_environment({"MPI_LOCALNRANKS": "1"})
    for line in ([program], under_cairn.cairn_command([program], work)):
        ran = under_cairn.execute(line, work, stage.RUN_SECONDS, variables)
        assert ran.status == 0, f"{ran}: {ran.output[-400:]}{ran.errors[-600:]}"
    under_cairn.remove(work)
    return 0


if __name__ == "__main__":
    sys.exit(main())
