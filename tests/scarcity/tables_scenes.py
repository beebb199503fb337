# SPDX-License-Identifier: Apache-2.0
"""Tables of a handful of records: objects, open descriptions, holds, and those of a process. What finds no room is
worked on through the kernel by everybody, so nobody sees that anything was full."""

from scarce import Programs

# Children with a pipe each way: tell(k, line) and hear(k) take turns with them, so that the order is the same
# natively and under Cairn.
FAMILY = """
    import os, sys, mmap, subprocess

    class Child:
        born = []

        def __init__(self, body, *arguments):
            down, up = os.pipe(), os.pipe()
            self.pid = os.fork()
            if self.pid == 0:
                os.close(down[1]), os.close(up[0])
                for elder in Child.born:
                    elder.commands.close(), elder.answers.close()
                commands, answers = os.fdopen(down[0], "r"), os.fdopen(up[1], "w", buffering=1)
                try:
                    for command in commands:
                        print(repr(body(command.strip(), *arguments)), file=answers)
                except BaseException as problem:
                    print("child failed:", repr(problem), file=answers)
                os._exit(0)
            os.close(down[0]), os.close(up[1])
            self.commands, self.answers = os.fdopen(down[1], "w", buffering=1), os.fdopen(up[0], "r")
            Child.born.append(self)

        def ask(self, command):
            print(command, file=self.commands)
            answer = self.answers.readline().strip()
            print(command, answer, flush=True)

        def end(self):
            self.commands.close()
            print("status", os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1]), flush=True)

    def create(name):
        return os.open(name, os.O_RDWR | os.O_CREAT, 0o644)

    def attempt(function, *arguments):
        try:
            return function(*arguments)
        except OSError as problem:
            return problem.strerror
"""

# One file through two opens, one of them made while the table was full, from two processes.
TWO_OPENS = FAMILY + """
    held = [create(f"h{number}") for number in range(20)]
    first = create("g")
    os.pwrite(first, b"one", 0)
    def work(command):
        global other
        if command == "open":
            other = create("g")
        if command == "write":
            os.pwrite(other, b"six", 0)
        return os.pread(other, 10, 0)
    child = Child(work)
    child.ask("open")
    for file in held:
        os.close(file)
    for number in range(20):
        os.unlink(f"h{number}")
    second = create("g")
    print(os.pread(second, 10, 0))
    os.pwrite(first, b"two", 0)
    print(os.pread(second, 10, 0))
    child.ask("read")
    os.pwrite(second, b"more", 1)
    print(os.pread(first, 10, 0))
    child.ask("write")
    print(os.pread(first, 10, 0), os.pread(second, 10, 0), os.stat("g").st_size)
    child.end()
"""


def one_truth_while_the_table_of_objects_is_full():
    Programs("objects", TWO_OPENS, "objects=8").agree()


def one_truth_while_the_table_of_descriptions_is_full():
    Programs("descriptions", TWO_OPENS, "descriptions=8").agree()


def one_truth_while_the_table_of_holds_is_full():
    Programs("opens", TWO_OPENS, "holds=8").agree()


# Forked children work at the offsets that they share with each other after their parent has closed the files and
# opened others, whose records must not be theirs.
CHILDREN = FAMILY + """
    files = [create(f"f{number % 3}") for number in range(6)]
    appending = os.open("log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for number, file in enumerate(files):
        os.lseek(file, 100 * number, 0)
    def work(command, mine):
        file = files[mine]
        if command == "write":
            os.write(appending, b"child %d\\n" % mine)
            return os.write(file, b"child %d " % mine), os.lseek(file, 0, 1)
        if command == "read":
            return os.pread(file, 1000, 0), os.lseek(file, 0, 1)
        if command == "seek":
            return os.lseek(file, 7, 1)
        if command == "cut":
            os.ftruncate(file, 350)
            return os.fstat(file).st_size
    children = [Child(work, number % 6) for number in range(8)]
    children[0].ask("write")
    print(os.lseek(files[0], 0, 1), os.write(files[1], b"parent"), os.lseek(files[1], 0, 1))
    for file in files:
        os.close(file)
    others = [create(f"o{number}") for number in range(12)]
    for number, file in enumerate(others):
        os.write(file, b"other %d" % number)
    for command in ("write", "seek", "write", "read", "cut", "read"):
        for child in children:
            child.ask(command)
    for number, file in enumerate(others):
        os.write(file, b" and more")
        print(os.lseek(file, 0, 1), os.pread(file, 100, 0))
    for child in children:
        child.end()
"""


def children_without_a_hold():
    Programs("children", CHILDREN, "holds=20").agree()


def children_with_some_holds():
    Programs("some-children", CHILDREN, "holds=40").agree()


# What the next program gets: by spawn, by exec of a child, by exec of a vfork child.
STARTED = FAMILY + """
    files = [create(f"f{number}") for number in range(5)]
    for number, file in enumerate(files):
        os.write(file, b"line %d\\n" % number * 3)
        os.lseek(file, 7, 0)
        os.set_inheritable(file, True)
    reader = "import os; print([os.read(f, 5) for f in FILES], [os.write(f, b'+') for f in FILES], flush=True)"
    words = [sys.executable, "-c", reader.replace("FILES", repr(files))]
    for how in ("spawn", "vfork", "fork"):
        if how == "spawn":
            print(os.waitpid(os.posix_spawn(words[0], words, os.environ), 0)[1])
        elif how == "vfork":
            print(subprocess.run(words, close_fds=False).returncode)
        else:
            child = os.fork()
            if child == 0:
                os.execv(words[0], words)
            print(os.waitpid(child, 0)[1])
        print([(os.lseek(file, 0, 1), os.pread(file, 100, 0)) for file in files], flush=True)
"""


def started_programs_without_a_hold():
    Programs("started", STARTED, "holds=7").agree()


def started_programs_with_some_holds():
    Programs("some-started", STARTED, "holds=12").agree()


MAPPED = FAMILY + """
    files = [create(f"f{number}") for number in range(6)]
    for number, file in enumerate(files):
        os.write(file, b"%d" % number * 10000)
    maps = [attempt(mmap.mmap, file, 10000) for file in files for again in range(2)]
    for number, file in enumerate(files):
        os.pwrite(file, b"through the file", 100)
        print(maps[2 * number][90:120])
        maps[2 * number + 1][5000:5003] = b"map"
        print(os.pread(file, 10, 4998))
    for mapping in maps[::2]:
        mapping.close()
    for number, file in enumerate(files):
        maps[2 * number + 1][7000:7003] = b"end"
        print(os.pread(file, 10, 6998), maps[2 * number + 1][4998:5008])
"""


def mappings_without_a_hold():
    Programs("mapped", MAPPED, "holds=9").agree()


# Numbers that the table of the process does not reach.
NUMBERS = FAMILY + """
    files = [create(f"f{number % 4}") for number in range(20)]
    for number, file in enumerate(files):
        os.pwrite(file, b"%02d" % number, 2 * number)
        os.lseek(file, number, 0)
    twice = [os.dup(file) for file in files]
    for file, copy in zip(files, twice):
        print(os.read(copy, 3), os.lseek(file, 0, 1), os.write(copy, b"."), os.pread(file, 60, 0))
        os.close(file)
        print(os.read(copy, 3), os.fstat(copy).st_size)
"""


def numbers_beyond_the_table():
    Programs("numbers", NUMBERS, "descriptors=16").agree()


SCENES = [one_truth_while_the_table_of_objects_is_full, one_truth_while_the_table_of_descriptions_is_full,
          one_truth_while_the_table_of_holds_is_full, children_without_a_hold, children_with_some_holds,
          started_programs_without_a_hold, started_programs_with_some_holds, mappings_without_a_hold,
          numbers_beyond_the_table]
