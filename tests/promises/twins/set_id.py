# SPDX-License-Identifier: Apache-2.0
"""Which calls take S_ISUID and S_ISGID away, asked right after the call and after all is stored. Runs as root; each
case once as root and once by a process that has become nobody with the file open."""

import os
import sys

NOBODY = 65534
MODES = (0o4755, 0o2755, 0o2745, 0o6777, 0o4666, 0o755)


def write_twice(file):
    os.write(file, b"one")
    os.write(file, b"two")


def copy(file):
    source = os.open("source", os.O_RDONLY)
    os.sendfile(file, source, 0, 50)
    os.close(source)


CALLS = {
    "write": lambda file: os.write(file, b"new"),
    "write_twice": write_twice,
    "pwrite_far": lambda file: os.pwrite(file, b"far", 200_000),
    "pwritev": lambda file: os.pwritev(file, [b"a", b"b"], 10),
    "write_nothing": lambda file: os.write(file, b""),
    "shorter": lambda file: os.ftruncate(file, 3),
    "longer": lambda file: os.ftruncate(file, 5000),
    "allocate": lambda file: os.posix_fallocate(file, 0, 9000),
    "sendfile": copy,
    "touch": os.utime,
}


def mode_of(file):
    return format(os.fstat(file).st_mode & 0o7777, "o")


def case(name, mode, user, late):
    path = f"{name}-{mode:o}-{user}-{late}"
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    os.write(file, b"some bytes to begin with")
    if not late:
        os.fchmod(file, mode)
        os.close(file)
        file = os.open(path, os.O_RDWR)
    elif late == "by_name":
        os.chmod(path, mode)
    else:
        os.fchmod(file, mode)
    seen = [mode_of(file)]
    if os.fork() == 0:
        status = 1
        try:
            os.read(file, 1)  # a process attaches before it becomes somebody else
            os.lseek(file, 0, os.SEEK_SET)
            if user:
                os.setgroups([])
                os.setgid(user)
                os.setuid(user)
            try:
                CALLS[name](file)
            except OSError as error:
                print(path, error.errno)
            print(path, mode_of(file), end=" ")
            status = 0
        finally:
            sys.stdout.flush()
            os._exit(status)
    assert os.wait()[1] == 0, path
    seen.append(mode_of(file))
    os.fsync(file)
    seen.append(mode_of(file))
    os.close(file)
    print(*seen, format(os.stat(path).st_mode & 0o7777, "o"))


os.umask(0)
with open("source", "wb") as to_be_copied:
    to_be_copied.write(b"s" * 100)
for call in CALLS:
    for bits in MODES:
        for who in (0, NOBODY):
            sys.stdout.flush()
            case(call, bits, who, "")
for how in ("by_name", "by_file"):
    for bits in MODES:
        sys.stdout.flush()
        case("write", bits, NOBODY, how)
        sys.stdout.flush()
        case("write", bits, 0, how)
