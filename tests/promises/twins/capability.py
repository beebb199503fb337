# SPDX-License-Identifier: Apache-2.0
"""A write takes a file's capability away, whoever writes; one that was set after the last write stays."""

import os
import subprocess
import sys

# cap_net_raw, permitted and effective, version 2
CAPABILITY = bytes.fromhex("0100000200200000000000000000000000000000")
NAME = "security.capability"


def has(path):
    return NAME in os.listxattr(path)


file = os.open("a", os.O_RDWR | os.O_CREAT, 0o755)
os.write(file, b"x" * 70_000)
try:
    os.setxattr(file, NAME, CAPABILITY)
except OSError as problem:
    print("skip: no capabilities here:", problem)
    sys.exit(0)
print(has("a"))
os.close(file)
os.sync()
print(has("a"))
file = os.open("a", os.O_RDWR)
os.write(file, b"new")
print(has("a"))
subprocess.run(["setcap", "cap_net_raw+ep", "a"], check=True)
print(has("a"))
os.write(file, b"newer")
print(has("a"), os.pread(file, 12, 0))
os.close(file)
