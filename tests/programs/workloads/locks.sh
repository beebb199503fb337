# SPDX-License-Identifier: Apache-2.0
# needs: python3 gcc
# timeout: 60
# ignore: static
# fcntl() locks go when the process closes a descriptor of the file, and only then: not when something is opened, cut
# or passed on for somebody else.
set -euo pipefail
cat >static.c <<'C'
#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int n, char** v) {
  struct flock lock = {.l_type = F_WRLCK, .l_len = 1};
  if (n > 1 && fork() == 0) {
    fcntl(open(v[1], O_RDWR), F_GETLK, &lock);
    puts(lock.l_type == F_UNLCK ? "executed free" : "executed held");
    return 0;
  }
  wait(NULL);
  return 0;
}
C
gcc -O1 -static -o static static.c
cat >locks.py <<'PYTHON'
import ctypes, fcntl, mmap, os, subprocess, sys

HELD = """
import fcntl, sys
with open(sys.argv[1], 'r+b') as file:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1)
        print(sys.argv[2], 'free', flush=True)
    except OSError:
        print(sys.argv[2], 'held', flush=True)
"""


def tell(name, when):
    sys.stdout.flush()
    subprocess.run([sys.executable, "-c", HELD, name, when], check=True)


def spawn(actions, *words):
    child = os.posix_spawn(words[0], words, os.environ, file_actions=actions)
    assert os.waitpid(child, 0)[1] == 0


def next_program(name, file):
    """The process keeps its locks over an exec; then it opens the file again, or closes a duplicate."""
    tell(name, "next program")
    again = os.open(name, os.O_RDWR)
    tell(name, "opened by the next program")
    os.pwrite(again, b"y", 1)
    os.fsync(file)
    tell(name, "written by the next program")
    if os.fork() == 0:  # which has no locks to pass on
        os.execv(sys.executable, [sys.executable, "-c", HELD, name, "next program of a child"])
    os.wait()
    os.close(os.dup(file))
    tell(name, "a duplicate closed by the next program")


if sys.argv[1] == "next":
    next_program(sys.argv[2], int(sys.argv[3]))
    sys.exit()
name, other = sys.argv[1:]
file = os.open(name, os.O_RDWR | os.O_CREAT)
os.write(file, b"x" * 100000)
fcntl.lockf(file, fcntl.LOCK_EX, 1)
tell(name, "locked")
for turn in range(100):
    spawn([(os.POSIX_SPAWN_OPEN, 9, name, os.O_WRONLY | os.O_APPEND, 0)], "/bin/sh", "-c", "echo line >&9")
tell(name, "spawned")
assert os.fstat(file).st_size == 100500, os.fstat(file)
spawn([(os.POSIX_SPAWN_DUP2, file, 9)], "./static")
tell(name, "static")
os.truncate(name, 5000)
tell(name, "truncated")
again = os.open(name, os.O_RDONLY)
tell(name, "opened again")
outside = os.open(other, os.O_RDWR | os.O_CREAT)
fcntl.lockf(outside, fcntl.LOCK_EX, 1)
spawn([(os.POSIX_SPAWN_OPEN, 9, other, os.O_WRONLY, 0)], "/bin/sh", "-c", "echo line >&9")
tell(other, "outside")
os.close(again)
tell(name, "closed")
mapped = os.open("mapped", os.O_RDWR | os.O_CREAT)
fcntl.lockf(mapped, fcntl.LOCK_EX, 1)
fcntl.flock(mapped, fcntl.LOCK_EX)
os.write(mapped, b"x" * 4096)
c = ctypes.CDLL(None)
c.mmap.restype = ctypes.c_void_p
mapping = ctypes.c_void_p(c.mmap(None, ctypes.c_size_t(4096), mmap.PROT_READ, mmap.MAP_SHARED, mapped,
                                 ctypes.c_long(0)))
os.close(mapped)
c.munmap(mapping, ctypes.c_size_t(4096))  # until then the mapping keeps the lock
mapped = os.open("mapped", os.O_RDWR)
fcntl.flock(mapped, fcntl.LOCK_EX | fcntl.LOCK_NB)
os.close(mapped)
locked = os.open("passed", os.O_RDWR | os.O_CREAT)
os.write(locked, b"x" * 1000)
os.set_inheritable(locked, True)
if (child := os.fork()) == 0:
    fcntl.lockf(locked, fcntl.LOCK_EX, 1)
    spawn([(os.POSIX_SPAWN_OPEN, 9, "passed", os.O_WRONLY, 0)], "/bin/sh", "-c", "echo line >&9")
    os.execv(sys.executable, [sys.executable, __file__, "next", "passed", str(locked)])
assert os.waitpid(child, 0)[1] == 0
os.close(locked)
numbers = [int(number) for number in os.listdir("/proc/self/fd")]
assert len(numbers) < 20, numbers
fcntl.lockf(file, fcntl.LOCK_EX, 1)
appending = os.open(name, os.O_WRONLY | os.O_APPEND)
os.set_inheritable(file, True)
os.set_inheritable(appending, True)
os.execv("./static", ["./static", name])
PYTHON
python3 locks.py file "$SCRATCH/outside"
sha256sum <file
