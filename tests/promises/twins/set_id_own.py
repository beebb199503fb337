# SPDX-License-Identifier: Apache-2.0
"""A user sets S_ISUID on a file of his own after he has written it, as cp -p, tar and install do: the write-back that
follows must not take it away; a write that follows must, even by his other descriptor and by another process."""

import os


def mode_of(path):
    return format(os.stat(path).st_mode & 0o7777, "o")


def make(name):
    file = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
    os.write(file, b"x" * 100_000)
    return file


os.umask(0)
kept = make("kept")
os.fchmod(kept, 0o6755)
os.close(kept)
named = make("named")
os.close(named)
os.chmod("named", 0o4711)
lost = make("lost")
os.fchmod(lost, 0o4755)
print(mode_of("lost"))
os.write(lost, b"more")
print(mode_of("lost"))
os.chmod("lost", 0o4755)
if os.fork() == 0:
    os.pwrite(lost, b"of a child", 5)
    os._exit(0)
os.wait()
print(mode_of("lost"))
print(os.pread(lost, 20, 0))
born = os.open("born", os.O_RDWR | os.O_CREAT, 0o4755)
os.write(born, b"b")
print(mode_of("born"))
os.sync()
print(*(mode_of(name) for name in ("kept", "named", "lost", "born")))
