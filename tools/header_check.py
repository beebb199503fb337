#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles every header of src/, include/ and cli/ alone, but those that their own source includes first: the build
with the second compiler, which has each source alone, does that. Headers that include HDF5's need what ./dev has
brought to build/hdf5, and are left out without it. Those of include/ that are for C as well are compiled as C, too.

Usage: header_check.py [--jobs N]
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

import sources

FLAGS = ("-std=gnu++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers",
         "-D_GNU_SOURCE", '-DCAIRN_VERSION="0"', "-x", "c++")

C_FLAGS = ("-std=c11", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-x", "c")

HDF5_HEADERS = "build/hdf5"
HDF5_ROOM = "src/frontends/hdf5/"


def compile_alone(header, root=sources.ROOT):
    """The compiler's complaint about a translation unit that includes only the header, twice; empty if none."""
    source = f'#include "{header}"\n#include "{header}"\n'
    command = [os.environ.get("CXX", "g++"), *FLAGS, f"-I{root}/src", f"-I{root}/include", f"-I{root}",
               "-isystem", f"{root}/{HDF5_HEADERS}", "-"]
    done = subprocess.run(command, input=source, capture_output=True, text=True, cwd=root, check=False)
    return done.stderr if done.returncode != 0 else ""


def compile_as_c(header, root=sources.ROOT):
    """The complaint of a C compiler that needs each structure of the header; empty if none."""
    names = re.findall(r"^struct (\w+) \{", pathlib.Path(root, header).read_text(), re.MULTILINE)
    source = f'#include "{header}"\n' + "".join(f"char size_of_{name}[sizeof(struct {name})];\n" for name in names)
    command = [os.environ.get("CC", "gcc"), *C_FLAGS, f"-I{root}/include", f"-I{root}", "-"]
    done = subprocess.run(command, input=source, capture_output=True, text=True, cwd=root, check=False)
    return done.stderr if done.returncode != 0 else ""


def is_for_c(header, root=sources.ROOT):
    return header.startswith("include/") and 'extern "C"' in pathlib.Path(root, header).read_text()


def is_first_in_its_source(header, root=sources.ROOT):
    source = pathlib.Path(root, header).with_suffix(".cc")
    if not source.exists():
        return False
    included = re.search(r'^#include [<"](.*)[>"]', source.read_text(), re.MULTILINE)
    return included is not None and ("/" + header).endswith("/" + included[1])


def headers(root=sources.ROOT):
    has_hdf5 = os.path.exists(os.path.join(root, HDF5_HEADERS, "hdf5.h"))
    return [path for path in sources.all_files(root)
            if path.endswith(".h") and path.startswith(("src/", "include/", "cli/"))
            and (has_hdf5 or not path.startswith(HDF5_ROOM)) and not is_first_in_its_source(path, root)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    jobs = parser.parse_args().jobs
    paths = headers()
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        complaints = [(path, text) for path, text in zip(paths, pool.map(compile_alone, paths)) if text]
    complaints += [(path, text) for path in paths if is_for_c(path) and (text := compile_as_c(path))]
    for path, text in complaints:
        print(f"{path} does not compile alone:\n{text}")
    print(f"headers: {len(paths) - len(complaints)} of {len(paths)} compile alone")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
