#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cairn tells an HDF5 to load the connector, but for one that lies in the program itself. There the linker has kept
what the program calls, and HDF5 would not start without what the connector calls besides. Nor does it tell of a
connector whose file cannot be loaded: the program reads as without Cairn, and `cairn run` names the file."""

import os
import shutil
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
# What is done to the connector's file, and what `cairn run` says of it.
BREAKS = {
    "whole": (lambda plugin: None, ""),
    "junk": (lambda plugin: plugin.write_bytes(b"no library at all\n" * 100), "is no library"),
    "half": (lambda plugin: plugin.write_bytes(plugin.read_bytes()[:plugin.stat().st_size // 2]), "is cut off"),
    "a pipe": (lambda plugin: (plugin.unlink(), os.mkfifo(plugin)), "is no library"),
    "missing": (lambda plugin: plugin.unlink(), ""),
}


def broken_connectors(work):
    """An installation of its own, whose connector is damaged."""
    program, fine = work / "hdf5-1.14.6-True", True
    for name, (damage, said) in BREAKS.items():
        root = work / name
        (root / "bin").mkdir(parents=True)
        shutil.copy(under_cairn.CAIRN, root / "bin/cairn")
        for library in ("libcairn_preload.so", "cairn/commands.so", "cairn/hdf5/libcairn_hdf5.so"):
            (root / "lib" / library).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(under_cairn.BUILD / "lib" / library, root / "lib" / library)
        damage(root / "lib/cairn/hdf5/libcairn_hdf5.so")
        command = under_cairn.cairn_command([program], work)
        outcome = under_cairn.execute([root / "bin/cairn", *command[1:]], work, 60, under_cairn.clean_environment())
        expected = "cairn path" if name == "whole" else "none none"
        is_right = outcome.status == 0 and outcome.output.strip() == expected
        is_right &= "libcairn_hdf5.so " + said in outcome.errors if said else "warning" not in outcome.errors
        fine &= is_right
        print(f"connector {name}: {outcome.output.strip()}{'' if is_right else f', {outcome}: {outcome.errors}'}")
    return fine


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
    failed |= not broken_connectors(work)
    if not failed:
        under_cairn.remove(work)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
