# SPDX-License-Identifier: Apache-2.0
"""A file is open by a name that is not managed when somebody opens it by one that is: all who have it open see each
other's writes. The run leaves `*.log` out; `../outside` is not managed either."""

import mmap
import os
import subprocess
import sys

CREATE = os.O_RDWR | os.O_CREAT
APPEND = os.O_WRONLY | os.O_APPEND
OUTSIDE = "../outside"


def both_write(before, managed):
    """`before` is the descriptor from before, open for reading and writing."""
    other = os.open(managed, os.O_RDWR)
    print(os.pread(other, 100, 0), os.fstat(other).st_size)
    os.pwrite(other, b"WORLD, more", 0)
    print(os.pread(before, 100, 0), os.fstat(before).st_size)
    os.pwrite(before, b"Z", 0)
    os.pwrite(before, b"end", 11)
    print(os.pread(other, 100, 0), os.fstat(other).st_size, os.stat(managed).st_size)
    os.ftruncate(other, 4)
    print(os.pread(before, 100, 0), os.fstat(before).st_size)
    os.close(other)
    with open(managed, "ab") as file:
        file.write(b" last")
    print(os.pread(before, 100, 0))


def rotated_log():
    writer = os.open("a.log", APPEND | os.O_CREAT, 0o644)
    os.write(writer, b"line 1\n")
    os.rename("a.log", "a.log.1")
    reader = os.open("a.log.1", os.O_RDONLY)
    print(os.read(reader, 100))
    os.write(writer, b"line 2\n")
    print(os.read(reader, 100), os.fstat(reader).st_size)
    other = os.open("a.log.1", APPEND)
    for line, file in enumerate((other, writer, other), 3):
        os.write(file, b"line %d\n" % line)
    os.close(other)
    print(open("a.log.1", "rb").read())
    for file in (writer, reader):
        os.close(file)
    # Nobody has it open: from here on it is a file like any other.
    with open("a.log.1", "ab") as file:
        file.write(b"line 6\n")
    print(open("a.log.1", "rb").read())


def from_outside():
    """Descriptor 7 is of outside.log, from before the run."""
    os.write(7, b"abc")
    os.rename("outside.log", "outside.log.1")
    both_write(7, "outside.log.1")


def renamed_directory():
    os.mkdir(f"{OUTSIDE}/d")
    before = os.open(f"{OUTSIDE}/d/file", CREATE)
    os.write(before, b"abc")
    os.rename(f"{OUTSIDE}/d", "d")
    both_write(before, "d/file")


def renamed_file():
    before = os.open(f"{OUTSIDE}/temporary", CREATE)
    os.write(before, b"abc")
    os.rename(f"{OUTSIDE}/temporary", "renamed")
    both_write(before, "renamed")


def linked_file():
    before = os.open(f"{OUTSIDE}/first", CREATE)
    os.write(before, b"abc")
    os.link(f"{OUTSIDE}/first", "linked")
    both_write(before, "linked")


def only_read_before():
    with open(f"{OUTSIDE}/read", "wb") as file:
        file.write(b"abc")
    before = os.open(f"{OUTSIDE}/read", os.O_RDONLY)
    os.rename(f"{OUTSIDE}/read", "read")
    with open("read", "ab") as file:
        file.write(b"def")
    print(os.pread(before, 100, 0), os.fstat(before).st_size)


def only_mapped_before():
    with open(f"{OUTSIDE}/mapped", "w+b") as file:
        file.write(b"abc" * 2000)
        file.flush()
        memory = mmap.mmap(file.fileno(), 6000)
    os.rename(f"{OUTSIDE}/mapped", "mapped")
    with open("mapped", "r+b") as file:
        file.write(b"XYZ")
        file.flush()
        print(memory[:6])
        memory[3:6] = b"UVW"
        file.seek(0)
        print(file.read(9))


def both_at_once():
    """Two processes open a new file at the same moment, each by another name. mknod() opens nothing."""
    files = 300
    os.mkdir(f"{OUTSIDE}/both")
    for number in range(files):
        os.mknod(f"{OUTSIDE}/both/{number}")
        os.link(f"{OUTSIDE}/both/{number}", f"both{number}")
    steps = mmap.mmap(-1, 2)

    def wait_for_both(me, step):
        steps[me] = step
        while steps[1 - me] not in (step, (step + 1) % 4):
            os.sched_yield()

    def differing(me):
        count = 0
        for number in range(files):
            wait_for_both(me, 0)
            file = os.open(f"{OUTSIDE}/both/{number}" if me else f"both{number}", os.O_RDWR)
            wait_for_both(me, 1)
            os.pwrite(file, b"AB"[me:me + 1], me)
            wait_for_both(me, 2)
            count += os.pread(file, 10, 0) != b"AB"
            wait_for_both(me, 3)
            os.close(file)
        return count

    child = os.fork()
    if child == 0:
        os._exit(min(differing(1), 255))
    print(differing(0), os.waitpid(child, 0)[1])


def with_a_child(words, inside, managed):
    """The child opens `inside` first, in a world of its own, and writes `Z` there after this process has written."""
    script = ("import os, sys; f = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o666); os.write(f, b'abc');"
              "print(flush=True); input(); print(os.pread(f, 100, 0), flush=True); os.pwrite(f, b'Z', 0)")
    child = subprocess.Popen([*words, sys.executable, "-c", script, inside], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True)
    child.stdout.readline()
    other = os.open(managed, os.O_RDWR)
    print(os.pread(other, 100, 0))
    os.pwrite(other, b"WORLD", 0)
    print(child.communicate("\n")[0].strip(), child.returncode)
    print(os.pread(other, 100, 0))


def without_proc():
    with_a_child(["unshare", "-m", "sh", "-c", 'umount -l /proc && exec "$@"', "sh"], "no-proc", "no-proc")


def bound():
    here = os.getcwd()
    os.mkdir(f"{OUTSIDE}/bound")
    words = f'mount --bind "{here}" ../outside/bound && exec "$@"'
    with_a_child(["unshare", "-m", "sh", "-c", words, "sh"], f"{OUTSIDE}/bound/file", "file")


def below_another_root():
    os.makedirs("root/w")
    told, tell = os.pipe()
    asked, ask = os.pipe()
    if os.fork() == 0:
        os.chroot("root")
        os.chdir("/")
        file = os.open("/w/f", CREATE, 0o666)
        os.write(file, b"abc")
        os.write(tell, b"x")
        os.read(asked, 1)
        print(os.pread(file, 100, 0), os.fstat(file).st_size, flush=True)
        os.pwrite(file, b"Z", 0)
        os._exit(0)
    os.read(told, 1)
    other = os.open("root/w/f", os.O_RDWR)
    print(os.pread(other, 100, 0))
    os.pwrite(other, b"WORLD", 0)
    os.write(ask, b"x")
    os.wait()
    print(os.pread(other, 100, 0))


sys.stdout.reconfigure(line_buffering=True)
os.mkdir(OUTSIDE)
scenes = [from_outside, rotated_log, renamed_directory, renamed_file, linked_file, only_read_before, only_mapped_before,
          both_at_once]
if os.geteuid() == 0 and subprocess.run(["unshare", "-m", "true"], check=False).returncode == 0:
    scenes += [without_proc, bound, below_another_root]
for scene in scenes:
    print(scene.__name__)
    scene()
