# SPDX-License-Identifier: Apache-2.0
"""A file that is made immutable while somebody has it open for writing: whatever the file system says to his writes is
said at once, and what was written before is stored."""

import os
import subprocess
import sys


def attempt(what, call, *arguments):
    try:
        print(what, call(*arguments))
    except OSError as error:
        print(what, "errno", error.errno)
    sys.stdout.flush()


def chattr(change, path):
    return subprocess.run(["chattr", change, path], check=False, capture_output=True).returncode


file = os.open("a", os.O_RDWR | os.O_CREAT, 0o644)
os.write(file, b"x" * 100_000)
if chattr("+i", "a") != 0:
    print("skip: no attributes here")
    sys.exit(0)
attempt("write", os.pwrite, file, b"new", 10)
attempt("append", os.pwrite, file, b"new", 200_000)
attempt("write of another", subprocess.call, ["sh", "-c", "echo more 2>/dev/null >>a"])
attempt("size", os.lseek, file, 0, os.SEEK_END)
attempt("bytes", os.pread, file, 5, 9)
attempt("fsync", os.fsync, file)
chattr("-i", "a")
attempt("write", os.pwrite, file, b"new", 10)
attempt("bytes", os.pread, file, 5, 9)
attempt("write", os.pwrite, file, b"new", 20)
attempt("close", os.close, file)
