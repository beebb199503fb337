#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cairn tells an HDF5 to load the connector, but for one that lies in the program itself. There the linker has kept
what the program calls, and HDF5 would not start without what the connector calls besides."""

import subprocess
import sys

import stage
import under_cairn

# As HDF5 asks while it starts. The linker keeps of an archive what something refers to.
PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
const char H5_lib_vers_info_g[] = "HDF5 library version: VERSION";
#ifdef WHOLE
int H5PLappend(const char *path) { return path == NULL; }
#endif
int main(void) {
  const char *connector = getenv("HDF5_VOL_CONNECTOR"), *path = getenv("HDF5_PLUGIN_PATH");
  printf("%s %s\\n", connector != NULL ? connector : "none", path != NULL ? "path" : "none");
  return 0;
}
"""
EXPECTED = {("1.14.6", True): "cairn path", ("2.2.0", True): "cairn path", ("1.10.8", True): "none none",
            ("2.2.0", False): "none none"}


def main():
    stage.need_plugin()
    work = under_cairn.work_directory("told")
    failed = False
    for (version, is_whole), expected in EXPECTED.items():
        program = work / f"hdf5-{version}-{is_whole}"
        subprocess.run(["cc", "-x", "c", "-", "-rdynamic", "-o", program, *(["-DWHOLE"] if is_whole else [])],
                       input=PROGRAM.replace("VERSION", version), text=True, check=True)
        outcome = under_cairn.execute(under_cairn.cairn_command([program], work), work, 60,
                                      under_cairn.clean_environment())
        is_right = outcome.status == 0 and outcome.output.strip() == expected
        failed |= not is_right
        print(f"HDF5 {version}, {'whole' if is_whole else 'in part'}: {outcome.output.strip()}"
              f"{'' if is_right else f', not {expected}: {outcome}'}")
    if not failed:
        under_cairn.remove(work)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
