# SPDX-License-Identifier: Apache-2.0
"""Programs that were written a moment ago are run, again and again, in each way to start one."""

import collections
import errno
import os
import subprocess

PROGRAM = open("/bin/true", "rb").read()
outcomes = collections.Counter()


def write(name):
    with open(name, "wb") as file:
        file.write(PROGRAM)
    os.chmod(name, 0o755)
    return "./" + name


def attempt(kind, start):
    try:
        outcomes[kind, start()] += 1
    except OSError as error:
        outcomes[kind, errno.errorcode[error.errno]] += 1


for turn in range(300):
    program = write(f"spawned-{turn % 150}")
    attempt("posix_spawn", lambda: os.waitpid(os.posix_spawn(program, [program], os.environ), 0)[1])
for turn in range(100):
    program = write(f"forked-{turn % 50}")
    attempt("execve", lambda: subprocess.call([program]))
for key, count in sorted(outcomes.items(), key=str):
    print(*key, count)
