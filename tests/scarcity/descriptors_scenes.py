# SPDX-License-Identifier: Apache-2.0
"""Few descriptors: of the service, on the way to it, and of the programs."""

import contextlib
import os
import resource
import time
from pathlib import Path

import under_cairn
from scarce import Programs, with_descriptors

# Each writer says that it has written, and stays until all have.
WRITERS = """
    import os, sys
    count = int(sys.argv[1])
    written, ready = os.pipe()
    wait, end = os.pipe()
    children = []
    for number in range(count):
        child = os.fork()
        if child == 0:
            os.close(end)
            try:
                file = os.open(f"f{number}", os.O_RDWR | os.O_CREAT, 0o644)
                os.write(file, b"writer %d " % number * 500)
            finally:
                os.write(ready, b".")
            os.read(wait, 1)
            os.pwrite(file, b"again", 1000)
            os._exit(0 if os.pread(file, 5, 1000) == b"again" else 9)
        children.append(child)
    said = 0
    while said < count:
        said += len(os.read(written, count))
    os.close(end)
    print([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children])
"""


def more_writers_than_descriptors():
    """Not even a connection each: the files of most of them are the kernel's for good."""
    Programs("writers", WRITERS, before=with_descriptors(100)).agree(120)


MANY_FILES = """
    import os, sys
    for number in range(int(sys.argv[1])):
        with open(f"f{number}", "wb") as file:
            file.write(b"file %d " % number * 300)
"""


def more_dirty_files_than_descriptors():
    Programs("files", MANY_FILES, before=with_descriptors(150)).agree(400)


def files_of(process):
    """The paths of what a process has open."""
    paths = set()
    for link in Path(f"/proc/{process}/fd").iterdir():
        with contextlib.suppress(OSError):
            paths.add(link.readlink())
    return paths


def wait_until(holds, what, seconds=20):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"waited in vain until {what}"
        time.sleep(0.01)


LOST = """
    import os, sys
    files = [os.open(f"f{number}", os.O_RDWR | os.O_CREAT, 0o644) for number in range(4)]
    print("ready", flush=True)
    sys.stdin.readline()
    for number, file in enumerate(files):
        os.write(file, b"number %d" % number)
        print(os.pread(file, 20, 0).decode(), flush=True)
    sys.stdin.readline()
    os.kill(os.getpid(), 9)
"""


def a_descriptor_that_is_lost_is_fetched():
    """The limit of the service falls to what it has open: what is sent to it then does not arrive, and is fetched
    when the limit has risen again."""
    programs = Programs("lost", LOST)
    with programs.start() as run:
        assert run.stdout.readline() == "ready\n", run.stderr.read()
        node = programs.node()
        limit = resource.prlimit(node, resource.RLIMIT_NOFILE)
        resource.prlimit(node, resource.RLIMIT_NOFILE, (len(os.listdir(f"/proc/{node}/fd")), limit[1]))
        print("\n", end="", file=run.stdin, flush=True)
        for number in range(4):
            line = run.stdout.readline()
            assert line == f"number {number}\n", f"read {line!r}"
        time.sleep(0.3)  # the service takes what is in its queue
        resource.prlimit(node, resource.RLIMIT_NOFILE, limit)
        files = {number: programs.work / f"cairn/f{number}" for number in range(4)}
        # What did not go to the service was written through.
        fetched = {file for number, file in files.items() if file.read_bytes() != b"number %d" % number}
        wait_until(lambda: fetched <= files_of(node), "the service has fetched what was lost")
        _, errors = run.communicate("\n", timeout=60)
    programs.end_node()
    assert run.returncode == 137, f"{run.returncode}: {errors} (kept {programs.work})"
    for number, file in files.items():
        stored = file.read_bytes()
        assert stored == b"number %d" % number, f"f{number} has {stored!r} (kept {programs.work})"
    programs.remove()


NUMBERS = """
    import os, subprocess
    open("f", "w").write("the file\\n")
    for count in range(5, 14):
        script = f"ulimit -n {count}; cat f f; echo again {count} >>f; cat f | tail -n 1; echo status $?"
        print(count, subprocess.run(["sh", "-c", script], capture_output=True).stdout, flush=True)
"""


BESIDE_ASKERS = """
    import glob, os, socket, sys, time
    files = [os.open(f"f{number}", os.O_RDWR | os.O_CREAT, 0o644) for number in range(8)]
    (path,) = glob.glob(os.path.join(os.environ["CAIRN_RUN_ROOT"], "*", "client.sock"))
    children = []
    for _ in range(3):
        children.append(os.fork())
        if children[-1] == 0:
            askers = [socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(30)]
            for asker in askers:
                asker.connect(path)
            time.sleep(60)
            os._exit(0)
    time.sleep(1)  # the service takes as many as it will
    for number, file in enumerate(files):
        os.write(file, b"number %d" % number)
    pid = os.getpid()
    if os.fork() == 0:
        os.kill(pid, 9)
        time.sleep(1)  # the service has read what the dead program said
        for child in children:
            os.kill(child, 9)
        os._exit(0)
    time.sleep(60)
"""


def those_who_ask_take_no_number_of_a_dirty_file():
    """Ninety connections that say nothing: what a program hands over beside them arrives, and outlives its death."""
    programs = Programs("beside-askers", BESIDE_ASKERS, before=with_descriptors(100))
    outcome, _ = programs.run("cairn")
    programs.end_node()
    assert outcome.status == 137, f"{outcome}: {outcome.errors} (kept {programs.work})"
    for number in range(8):
        stored = (programs.work / f"cairn/f{number}").read_bytes()
        assert stored == b"number %d" % number, f"f{number} has {stored!r} (kept {programs.work})"
    programs.remove()


CUTS = """
    import os, resource
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    for left in range(1, 9):
        name = f"f{left}"
        with open(name, "wb") as file:
            file.write(b"old bytes")
        fill = []
        try:
            while True:
                fill.append(os.open("/dev/null", os.O_RDONLY))
        except OSError:
            pass
        for _ in range(left):
            os.close(fill.pop())
        file = os.open(name, os.O_RDONLY | os.O_TRUNC)
        seen = os.fstat(file).st_size, os.read(file, 20)
        os.close(file)
        for other in fill:
            os.close(other)
        print(left, *seen, os.stat(name).st_size)
"""


def opens_that_cut_with_hardly_a_number():
    """The kernel cuts the file in the open: what the buffer has of it must go, with whatever is left."""
    Programs("cuts", CUTS).agree()


def programs_with_hardly_a_number():
    Programs("numbers", NUMBERS).agree()


def without_a_number_to_ask_with_an_open_fails():
    """The file has the last number, and the node cannot be asked what of the file is stored: nothing is read then."""
    directory = under_cairn.work_directory("scarcity-last-number")
    script = "ulimit -n 4; cat f"
    (directory / "f").write_text("as it was before")
    command = under_cairn.cairn_command(["sh", "-c", f"printf 'as it is now' >f; {script}"], directory)
    outcome = under_cairn.execute(command, directory, 60)
    assert outcome.status == 1 and outcome.output == "", f"{outcome}: {outcome.output!r}"
    assert "Too many open files" in outcome.errors, outcome.errors
    assert (directory / "f").read_text() == "as it is now"
    under_cairn.remove(directory)


# Every second process has the file at a number that the library does not track: it appends through the kernel alone,
# which begins while the others append to the buffer.
APPENDERS = """
    import collections, os
    COUNT = 2000
    children = []
    wait, begin = os.pipe()
    for number in range(6):
        child = os.fork()
        if child == 0:
            os.close(begin)
            if number % 2:
                others = [os.open("/dev/null", os.O_RDONLY) for _ in range(24)]
            os.read(wait, 1)
            file = os.open("log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            for _ in range(COUNT):
                os.write(file, b"%d" % number * 63 + b"|")
            os._exit(0)
        children.append(child)
    os.close(begin)
    print([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children])
    print(sorted(collections.Counter(open("log", "rb").read().split(b"|")).items()))
    os.unlink("log")
"""


def appends_beside_those_of_the_kernel():
    Programs("appenders", APPENDERS, capacities="descriptors=24").agree()


LIMITED = """
    import os, resource, signal
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    buffered = os.open("log", os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
    others = [os.open("/dev/null", os.O_RDONLY) for _ in range(24)]
    past = os.open("log", os.O_WRONLY | os.O_APPEND)
    print(os.write(past, b"A" * 10))
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, 20))
    print(os.write(buffered, b"B" * 24), os.pread(buffered, 100, 0), os.fstat(buffered).st_size)
"""


def an_append_past_the_size_limit_goes_to_the_kernels_end():
    Programs("limited", LIMITED, capacities="descriptors=24").agree()


# One of these opens is the first that the service has no room for, whatever it has taken before.
APPENDED = """
    import os
    kept = []
    for number in range(24):
        first = os.open(f"a{number}", os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        os.write(first, b"x" * 5000)
        os.lseek(first, 4316, os.SEEK_SET)
        kept.append(os.dup(first))
        os.close(first)
        at = os.lseek(kept[-1], 0, os.SEEK_CUR)
        print(number, at, len(os.read(kept[-1], 1000)), os.write(kept[-1], b"y"), os.lseek(kept[-1], 0, os.SEEK_CUR))
"""


def an_appending_descriptor_keeps_its_offset():
    Programs("appended", APPENDED, capacities="descriptors=24").agree()


# The number 100 is one that the library does not track, and children get no hold: both have the file past the buffers.
SHARED = """
    import fcntl, os, subprocess, sys
    READ = "import os; print(len(os.read(0, 700)), os.lseek(0, 0, os.SEEK_CUR), os.write(0, b'child'), flush=True)"

    def flags(file):
        return oct(fcntl.fcntl(file, fcntl.F_GETFL) & (os.O_ACCMODE | os.O_APPEND | os.O_DIRECT | os.O_NONBLOCK))

    def both(what, file, other):
        print(what, os.lseek(file, 0, os.SEEK_CUR), os.lseek(other, 0, os.SEEK_CUR), flags(file), flags(other))
        sys.stdout.flush()

    def share(name, given):
        file = os.open(name, os.O_RDWR | os.O_CREAT | given, 0o644)
        if not given & os.O_DIRECT:
            os.write(file, b"x" * 5000)
        other = fcntl.fcntl(file, fcntl.F_DUPFD, 100)
        both("shared", file, other)
        print(os.lseek(other, 512, os.SEEK_SET))
        if not given & os.O_DIRECT:
            print(len(os.read(file, 100)), len(os.read(other, 100)), os.write(file, b"y"), os.write(other, b"z"))
            print(os.pread(other, 10, 4998), os.lseek(other, -2000, os.SEEK_END))
        both("used", file, other)
        for changed, kept in (file, other), (other, file):
            before = fcntl.fcntl(changed, fcntl.F_GETFL)
            fcntl.fcntl(changed, fcntl.F_SETFL, before ^ (os.O_NONBLOCK | os.O_APPEND))
            both("changed", changed, kept)
            if not given & os.O_DIRECT:
                print(os.write(kept, b"k"), os.write(changed, b"c"), os.fstat(file).st_size)
        both("changed twice", file, other)
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(file, fcntl.LOCK_UN)
        stranger = os.open(name, os.O_RDWR)
        fcntl.flock(stranger, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(stranger)
        if not given & os.O_DIRECT:
            os.lseek(file, 100, os.SEEK_SET)
            subprocess.run([sys.executable, "-c", READ], stdin=file, check=True)
            both("after a child", file, other)
        os.close(other)
        os.close(file)

    for given in 0, os.O_APPEND, os.O_APPEND | os.O_NONBLOCK, os.O_DIRECT, os.O_APPEND | os.O_DIRECT:
        share(f"f{given}", given)
"""


def those_who_share_a_file_past_the_buffers_have_one_position():
    Programs("shared", SHARED, capacities="descriptors=24").agree()
    Programs("shared-unheld", SHARED, capacities="descriptors=24,holds=10").agree()


SCENES = [more_dirty_files_than_descriptors, more_writers_than_descriptors, a_descriptor_that_is_lost_is_fetched,
          those_who_ask_take_no_number_of_a_dirty_file, opens_that_cut_with_hardly_a_number,
          appends_beside_those_of_the_kernel, programs_with_hardly_a_number, without_a_number_to_ask_with_an_open_fails,
          an_append_past_the_size_limit_goes_to_the_kernels_end, an_appending_descriptor_keeps_its_offset,
          those_who_share_a_file_past_the_buffers_have_one_position]
