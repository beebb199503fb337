# SPDX-License-Identifier: Apache-2.0
"""Thousands of files that the next program inherits: from a thread with a small stack, in an environment that could
not hold the table of them."""

import resource

from scarce import Programs

# The child says what it reads through each descriptor, and moves the offsets that it shares with its parent.
STARTS = '''
    import os, resource, subprocess, sys, threading
    count = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    files = []
    for number in range(count):
        file = os.open(f"f{number % 50}", os.O_RDWR | os.O_CREAT, 0o644)
        os.pwrite(file, b"%05d" % number, number * 5)
        os.lseek(file, number * 5, 0)
        os.set_inheritable(file, True)
        files.append(file)
    twice = os.dup(files[7])
    os.set_inheritable(twice, True)
    # Numbers are not the same in both runs: those that the library keeps for itself lie in between.
    with open("../numbers", "w") as numbers:
        numbers.write(repr(files + [twice]))
    reader = ("import os; *files, twice = eval(open('../numbers').read()); "
              "print(sum(os.read(file, 5) == b'%05d' % number for number, file in enumerate(files)),"
              " os.read(twice, 2), flush=True)")
    words = [sys.executable, "-c", reader]

    def rewind():
        for number, file in enumerate(files):
            os.lseek(file, number * 5, 0)

    def start(how):
        rewind()
        if how == "vfork":
            status = subprocess.run(words, close_fds=False).returncode
        elif how == "posix_spawn":
            status = os.waitstatus_to_exitcode(os.waitpid(os.posix_spawn(words[0], words, os.environ), 0)[1])
        elif how == "fork":
            child = os.fork()
            if child == 0:
                os.execv(words[0], words)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        else:
            status = os.waitstatus_to_exitcode(os.system("exit 3"))
        moved = sum(os.lseek(file, 0, 1) == number * 5 + 5 for number, file in enumerate(files))
        print(how, status, moved, flush=True)

    def all_ways():
        for how in ("vfork", "posix_spawn", "fork", "system", "vfork"):
            start(how)

    threading.stack_size(256 * 1024)
    thread = threading.Thread(target=all_ways)
    thread.start()
    thread.join()
'''


def three_thousand_files():
    Programs("three-thousand", STARTS).agree(3000)


def nine_thousand_files():
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 20000:
        print("left out nine_thousand_files: the hard limit of descriptors is below 20,000")
        return
    Programs("nine-thousand", STARTS).agree(9000)


SCENES = [three_thousand_files, nine_thousand_files]
