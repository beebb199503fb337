#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which files are ours, by kind. The other checks import it; as a program it prints the list.

Usage: sources.py --cpp [PATH...]      the C and C++ sources, all or those under the paths
"""

import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CPP_SUFFIXES = (".cc", ".h", ".c")
SCRIPT_SUFFIXES = (".py", ".sh", ".cmake", ".yaml", ".yml")
SCRIPT_NAMES = ("CMakeLists.txt", "dev", "run", ".clang-format", ".clang-tidy")
FOREIGN_FOLDERS = ("build", ".git", "__pycache__", "corpus")


def all_files(root=ROOT):
    """Paths relative to the root, sorted, without build trees and what fuzz targets are fed."""
    found = []
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = [name for name in subfolders if name not in FOREIGN_FOLDERS]
        found += [os.path.relpath(os.path.join(folder, name), root) for name in names]
    return sorted(found)


def is_cpp(path):
    return path.endswith(CPP_SUFFIXES)


def is_test_code(path):
    """Tests and test doubles: they may use more than the code they test."""
    return path.endswith("_test.cc") or "/testing/" in path


def has_shebang(path, root):
    if os.path.splitext(path)[1]:
        return False
    with open(os.path.join(root, path), "rb") as file:
        return file.read(2) == b"#!"


def is_script(path, root=ROOT):
    return (path.endswith(SCRIPT_SUFFIXES) or os.path.basename(path) in SCRIPT_NAMES
            or has_shebang(path, root))


def read(path, root=ROOT):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def main(arguments):
    if not arguments or arguments[0] != "--cpp":
        print(__doc__.strip(), file=sys.stderr)
        return 2
    prefixes = tuple(os.path.normpath(path) for path in arguments[1:])
    for path in all_files():
        if is_cpp(path) and (not prefixes or path.startswith(prefixes)):
            print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
