#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that libcairn_preload.so is a good guest: it needs only libc, and exports only hooks.

Usage: preload_check.py LIBRARY
"""

import re
import subprocess
import sys

ALLOWED_LIBRARIES = ("libc.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1")
# A mangled name in the dynamic table would be C++ of ours (or of the static libstdc++) that another library
# of the process could bind to.
MANGLED = re.compile(r"^_Z")


def needed_problems(dynamic_section):
    """Problems in the output of `readelf -d`."""
    needed = re.findall(r"\(NEEDED\).*\[(.+?)\]", dynamic_section)
    problems = [f"needs {name}; only libc and the dynamic linker are allowed"
                for name in needed if name not in ALLOWED_LIBRARIES]
    if "(TEXTREL)" in dynamic_section:
        problems.append("has text relocations")
    return problems


def export_problems(symbols):
    """Problems in the output of `nm -D --defined-only`."""
    problems = []
    for line in symbols.splitlines():
        name = line.split()[-1].split("@")[0]
        if MANGLED.match(name):
            problems.append(f"exports {name}; only hooks with C linkage may be exported")
    return problems


def main(arguments):
    if len(arguments) != 1:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    library = arguments[0]
    dynamic_section = subprocess.run(["readelf", "-dW", library], check=True, capture_output=True, text=True)
    symbols = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True)
    problems = needed_problems(dynamic_section.stdout) + export_problems(symbols.stdout)
    for problem in problems[:20]:
        print(f"{library}: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
