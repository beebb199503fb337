# SPDX-License-Identifier: Apache-2.0
"""Append-only files (chattr +a): they grow, by whatever call, and refuse everything else."""

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


with open("log", "wb") as first:
    first.write(b"begin\n")
opened = os.open("log", os.O_RDWR)
if chattr("+a", "log") != 0:
    print("skip: no attributes here")
    sys.exit(0)
reader = os.open("log", os.O_RDONLY)
print(os.read(reader, 100))
log = os.open("log", os.O_WRONLY | os.O_APPEND)
attempt("append", os.write, log, b"one\n")
print(os.read(reader, 100))
attempt("append", os.pwrite, log, b"two\n", 0)
print(os.read(reader, 100))
attempt("fsync", os.fsync, log)
attempt("write only", os.open, "log", os.O_WRONLY)
attempt("truncate", os.ftruncate, log, 3)
attempt("truncate", os.truncate, "log", 3)
attempt("from before", os.pwrite, opened, b"BEGIN", 0)
os.close(log)
with open("log", "ab") as stream:
    stream.write(b"three\n")
print(os.read(reader, 100), os.fstat(reader).st_size)
print(subprocess.run("echo four >>log; cat log", shell=True, capture_output=True, check=False).stdout)
chattr("-a", "log")
attempt("afterwards", os.pwrite, opened, b"Begin", 0)
os.fsync(opened)
with open("log", "rb") as whole:
    print(whole.read())
