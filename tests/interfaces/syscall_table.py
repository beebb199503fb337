#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every system call number that the headers of this machine have is in exactly one group of the table of raw calls, and
every one that is to be translated has its case.

    syscall_table.py [--show]
"""

import collections
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
POSIX = HERE.parent.parent / "src/frontends/posix"


def known_to_headers():
    asked = subprocess.run(["gcc", "-E", "-dM", "-include", "sys/syscall.h", "-x", "c", "/dev/null"],
                           capture_output=True, text=True, check=True)
    return set(re.findall(r"#define __NR_(\w+)", asked.stdout))


def groups():
    """The numbers of each group, by the group's name."""
    text = (POSIX / "raw_syscall_table.h").read_text()
    found = {}
    for name, body in re.findall(r"inline constexpr long (k\w+)\[\] = \{(.*?)\};", text, re.DOTALL):
        found[name] = re.findall(r"\bSYS_(\w+)", body)
    return found


def main():
    table = groups()
    counted = collections.Counter(number for numbers in table.values() for number in numbers)
    cases = set(re.findall(r"case SYS_(\w+):", (POSIX / "raw_syscall_calls.cc").read_text()))
    problems = [f"{name} is in no group" for name in sorted(known_to_headers() - set(counted))]
    problems += [f"{name} is in {times} groups" for name, times in counted.items() if times > 1]
    translated = table["kTranslatedCalls"]
    problems += [f"{name} is to be translated and has no case" for name in translated if name not in cases]
    problems += [f"{name} has a case and is not to be translated" for name in cases - set(translated)]
    if "--show" in sys.argv:
        for name, numbers in table.items():
            print(f"{name}: {len(numbers)}")
    for problem in problems:
        print(problem)
    print(f"{len(counted)} system calls, {len(translated)} of them translated, {len(problems)} problems")
    return 1 if problems or len(counted) < 300 else 0


if __name__ == "__main__":
    sys.exit(main())
