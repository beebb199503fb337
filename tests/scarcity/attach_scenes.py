# SPDX-License-Identifier: Apache-2.0
"""Processes that the node cannot serve: no address space, no slot, a service that does not answer or is dead, another
root directory, programs that nobody can intercept. None of them reads stale bytes, nothing that they write is lost,
and where neither can be had, the open fails."""

import os
import shutil
import subprocess
import sys
import time

import under_cairn

# Nothing is stored of its own accord while a scene looks.
CONFIG = "flush:\n  delay_ms: 3600000\n"


class Scene:
    """A shell script, run natively and under Cairn; both must say and leave the same."""

    def __init__(self, name, script, config="", options=()):
        self.work = under_cairn.work_directory("scarcity-" + name)
        self.script, self.options = script, list(options)
        self.config = self.work / "cairn.yaml"
        self.config.write_text(CONFIG + config)
        self.report = ""

    def run(self, kind, timeout=120):
        directory = self.work / kind
        directory.mkdir()
        command = ["sh", "-c", self.script]
        if kind == "cairn":
            command = under_cairn.cairn_command(command, directory,
                                                options=["--config", str(self.config), *self.options])
            command.remove("--no-report")
        environment = under_cairn.clean_environment({"PYTHONDONTWRITEBYTECODE": "1", "PYTHON": sys.executable})
        outcome = under_cairn.execute(command, directory, timeout, environment)
        return outcome, under_cairn.read_tree(directory)

    def agree(self, **expected):
        native, native_tree = self.run("native")
        other, tree = self.run("cairn")
        where = f"(kept {self.work})"
        self.report = other.errors
        assert other.status == native.status, f"natively {native}, under Cairn {other}: {other.errors[-900:]} {where}"
        assert other.output == native.output, f"natively {native.output!r}, under Cairn {other.output!r} {where}"
        lines = under_cairn.compare_trees(native_tree, tree)
        assert not lines, "\n  ".join(["what is stored differs:", *lines, where])
        assert native.output.endswith(expected.get("says", "")), f"natively {native.output!r} {where}"
        reason = expected.get("reason")
        assert not reason or reason in self.report, f"no word of {reason!r} in the report: {self.report[-900:]} {where}"
        under_cairn.remove(self.work)


# One line: a new file, opened for reading and cut, by a process that may not write it.
MAKE_WITHOUT_RIGHTS = (
    "import ctypes, os, struct; assert ctypes.CDLL(None).capset(struct.pack(\"Ii\", 0x20080522, 0), bytes(24)) == 0; "
    "os.open(\"made\", os.O_RDONLY | os.O_CREAT | os.O_TRUNC, 0o444)")


def no_address_space():
    Scene("no-memory", """
        printf first-and-longer >f
        sh -c 'ulimit -v 60000; cat f; printf SECOND >f; cat f >copy; printf third >>f; truncate -s 9 f'
        cat f copy; stat -c %s f
        sh -c 'ulimit -v 60000; printf more >>f; printf new >g'; cat f g
        exec 3<>f; printf 12 >&3
        (ulimit -v 60000; exec sh -c 'printf 34 >&3; cat f'); printf 67 >&3; cat f
        exec 4>both 5>&4; (ulimit -v 60000; exec sh -c 'printf one >&4; printf two >&5; exec 4>&-; printf three >&5')
        printf four >&4; cat both
        """ + f"(ulimit -v 60000; exec {sys.executable} -c '{MAKE_WITHOUT_RIGHTS}') && echo made"
          ).agree(reason="address space", says="made\n")


# The welcome carries a descriptor of each tier, so the node with the most of them sends the most.
def as_many_tiers_as_possible():
    scene = Scene("all-tiers", "printf first >f; cat f; printf second >>f; cat f; stat -c %s f")
    scratch = scene.work / "scratch"
    scratch.mkdir()
    scene.options += ["--swap", "16M", "--scratch", str(scratch)]
    for tier in range(6):
        directory = scene.work / f"tier{tier}"
        directory.mkdir()
        scene.options += ["--tier", f"{directory}:8M"]
    scene.agree()
    assert "unbuffered" not in scene.report, scene.report[-900:]


# Files that are open when the limit comes are shared with children that the node does not take.
def more_processes_than_slots():
    Scene("no-slot", """
        work() {
          for round in 1 2 3 4 5 6; do
            echo "$1 $round" >>log.$1; cat log.$1 >copy.$1; cp copy.$1 again.$1
            sort -r again.$1 >sorted.$1; truncate -s 3 copy.$1; cat copy.$1 >>again.$1
          done
        }
        exec 5>shared
        for worker in 1 2 3 4 5 6 7 8; do work $worker & done; wait
        (echo inherited >&5; (echo twice >&5; echo by a grandchild >&5)); echo end >&5
        cat shared; for worker in 1 2 3 4 5 6 7 8; do cat sorted.$worker again.$worker; done | cksum
        """, config="clients:\n  max: 6\n").agree()


def offsets_of_inherited_files():
    Scene("inherited", """
        "$PYTHON" -c '
import os, subprocess, sys, time
file = os.open("f", os.O_RDWR | os.O_CREAT, 0o644)
appended = os.open("a", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
os.write(file, b"0123456789" * 1000)
os.lseek(file, 100, 0)
children = []
for number in range(12):
    child = os.fork()
    if child == 0:
        os.write(file, b"%04d" % number); os.write(appended, b"a")
        time.sleep(0.3)
        os._exit(0)
    children.append(child)
for child in children:
    os.waitpid(child, 0)
print(os.lseek(file, 0, 1), os.fstat(appended).st_size)
data = os.pread(file, 48, 100)
words = sorted(data[at:at + 4] for at in range(0, 48, 4))
print(words)
os.pwrite(file, b"".join(words), 100)   # whose turn was when is not what is compared
os.set_inheritable(file, True)
writer = "import os, sys, time; os.write(%d, b\\"word\\"); time.sleep(0.3)" % file
processes = [subprocess.Popen([sys.executable, "-c", writer], close_fds=False) for number in range(6)]
print([process.wait() for process in processes], os.lseek(file, 0, 1), os.pread(file, 24, 148))
'
        """, config="clients:\n  max: 7\n").agree()


# Some of them are served and some are not; each word has a place of its own and is read by one of them.
def an_offset_that_all_move():
    Scene("offset", """
        "$PYTHON" -c '
import os
written = os.open("written", os.O_RDWR | os.O_CREAT, 0o644)
read = os.open("read", os.O_RDWR | os.O_CREAT, 0o644)
sought = os.open("read", os.O_RDWR)
seen = os.open("seen", os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
os.write(read, b"".join(b"%05d\\n" % number for number in range(12 * 250)))
os.lseek(read, 0, 0)
children = []
for number in range(12):
    child = os.fork()
    if child == 0:
        for turn in range(250):
            os.writev(written, [b"%02d" % number, b"%03d\\n" % turn]) if turn % 3 else \
                os.write(written, b"%02d%03d\\n" % (number, turn))
            os.lseek(sought, 1, os.SEEK_CUR)
            os.write(seen, os.read(read, 6))
        os._exit(0)
    children.append(child)
print([os.waitpid(child, 0)[1] for child in children])
print(os.lseek(read, 0, 1), os.read(read, 1), os.lseek(sought, 0, 1))
'
        sort seen >sorted; rm seen; cmp read sorted && sort -u written | grep -c .; rm written
        """, config="clients:\n  max: 7\n").agree()


# Too few slots for any to be offered: each process waits for the service.
NO_OFFERS = "clients:\n  max: 20\n"


def under_stopped_service(kind, body, config=NO_OFFERS):
    """What `body` prints and how long it takes while the service is stopped in the middle of a run."""
    work = under_cairn.work_directory("scarcity-" + kind)
    directory = work / "data"
    directory.mkdir()
    (work / "cairn.yaml").write_text(CONFIG + config)
    # Told to stop, its threads do so one after the other; no child that looks would be taken meanwhile.
    script = '''P=$(cat $(dirname $CAIRN_SOCKET)/node.pid)
        is_stopped() {
          for task in /proc/$P/task/*; do read -r line <$task/stat; case $line in *') T '*) ;; *) return 1;; esac; done
        }
        stop() { kill -STOP $P; until is_stopped; do :; done; }
        printf first-and-longer >f\n''' + body
    command = under_cairn.cairn_command(["sh", "-c", script], directory, options=["--config", str(work / "cairn.yaml")])
    began = time.monotonic()
    outcome = under_cairn.execute(command, directory, 100, under_cairn.clean_environment())
    return work, directory, outcome, time.monotonic() - began


def slow_service():
    work, directory, outcome, _ = under_stopped_service("slow", """
        (sleep 3.5; kill -CONT $P) & sleep 0.5; stop
        cat f; sh -c 'printf SECOND >f'; wait; cat f""")
    assert outcome.output == "first-and-longerSECOND", f"{outcome}: {outcome.output!r} {outcome.errors[-600:]} {work}"
    assert (directory / "f").read_text() == "SECOND"
    under_cairn.remove(work)


def stopped_service():
    work, directory, outcome, seconds = under_stopped_service("stopped", """
        exec 7>../one 8>../two; stop
        { cat f; echo "cat $?"; } >&7 2>&1 & { sh -c 'printf SECOND >f' || echo "sh failed"; } >&8 2>&1; wait
        kill -CONT $P; cat ../one ../two; cat f; printf ' again' >>f; cat f""")
    said = outcome.output
    for word in ("cat 1\n", "sh failed\n", "Input/output error", "\nfirst-and-longerfirst-and-longer again"):
        assert word in said, f"{outcome}: {said!r} {outcome.errors} {work}"
    assert (directory / "f").read_text() == "first-and-longer again"
    assert seconds < 60, f"{seconds:.0f} s"
    under_cairn.remove(work)


def stopped_service_that_offers_slots():
    """Nobody waits for it: programs take slots by themselves, and what they leave is stored when it goes on."""
    work, directory, outcome, seconds = under_stopped_service("offers", """
        stop; cat f; printf SECOND >g; cat g; (printf third >h; kill -KILL $(sh -c 'echo $PPID')); cat h
        kill -CONT $P; echo; cat f g h""", config="")
    expected = "first-and-longerSECONDthird\nfirst-and-longerSECONDthird"
    assert outcome.output == expected, f"{outcome}: {outcome.output!r} {outcome.errors[-600:]} {work}"
    for name, text in ("f", "first-and-longer"), ("g", "SECOND"), ("h", "third"):
        assert (directory / name).read_text() == text, f"{name}: {(directory / name).read_text()!r} {work}"
    assert seconds < 5, f"{seconds:.0f} s {work}"
    under_cairn.remove(work)


def dead_service():
    # A service that hears of its keeper's death starts another one.
    work, directory, outcome, _ = under_stopped_service("dead", """
        stop; kill -KILL $(awk '{print $4}' /proc/$P/stat) $P
        for i in $(seq 100); do [ -z "$(ls /proc/$P/fd)" ] && break; sleep 0.05; done
        cat f && echo "read a stale file"; sh -c 'printf SECOND >f' || echo "sh failed"
        cat /etc/passwd >/dev/null && echo others""")
    assert outcome.output == "sh failed\nothers\n", f"{outcome}: {outcome.output!r} {outcome.errors} {work}"
    assert outcome.errors.count("Input/output error") >= 1 and outcome.status == 74, f"{outcome}: {outcome.errors}"
    under_cairn.remove(work)


STATIC = """#include <stdio.h>
int main(int count, char** words) { char b[64] = ""; FILE* f = fopen(words[1], "r"); fread(b, 1, 60, f); puts(b); }
"""

RAW = """#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int count, char** words) {
  int file = open("raw", O_RDWR | O_CREAT | O_TRUNC, 0644);
  if (write(file, "written before", 14) != 14) return 3;
  char* arguments[] = {words[1], "raw", 0};
  char* environment[] = {0};
  if (atoi(words[2])) syscall(SYS_execveat, AT_FDCWD, words[1], arguments, environment, 0);
  syscall(SYS_execve, words[1], arguments, environment);
  return 1;
}
"""


def compiled(work, name, text, *options):
    source = work / (name + ".c")
    source.write_text(text)
    outcome = under_cairn.execute(["cc", "-w", "-o", work / name, source, *options], work, 100)
    return work / name if outcome.status == 0 else None


def raw_exec_of_a_static_program():
    work = under_cairn.work_directory("scarcity-programs")
    static, raw = compiled(work, "static", STATIC, "-static"), compiled(work, "raw", RAW)
    assert static and raw, "the programs cannot be built"
    Scene("raw-exec", f"{raw} {static} 0; {raw} {static} 1; rm -f raw; echo x >raw; env -i {static} raw"
          ).agree(reason="statically linked")
    under_cairn.remove(work)


APPENDING = """#include <fcntl.h>
int main(int count, char** words) { return fcntl(3, F_SETFL, O_APPEND); }
"""

FLAGGED = """#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char** words) {
  char* zeros = calloc(1, 400000);
  int file = open("flagged", O_RDWR | O_CREAT | O_TRUNC, 0644), other = open("flagged", O_WRONLY);
  if (file != 3) return 3;
  write(file, zeros, 400000);
  fsync(file);
  if (fork() == 0) return execl(words[1], words[1], NULL);
  wait(NULL);
  pwrite(file, "end", 3, 150000);
  for (int at = 0; at < 6; ++at) pwrite(other, "middle", 6, at * 65536 + 5000);
  printf("%d", fsync(file));
  pwrite(other, "last", 4, 70000);
  printf(" %d %d", fsync(file), (int)lseek(file, 0, SEEK_END));
}
"""


def a_static_child_makes_its_file_append():
    """It shares the description through which its parent stores bytes at their places."""
    work = under_cairn.work_directory("scarcity-programs")
    static, parent = compiled(work, "appending", APPENDING, "-static"), compiled(work, "flagged", FLAGGED)
    assert static and parent, "the programs cannot be built"
    Scene("flagged", f"{parent} {static}; cksum <flagged").agree()
    under_cairn.remove(work)


ONE_BYTE = "int main(void) { return write(1, \"s\", 1) != 1; }\n"

# Starts the program by vfork, by posix_spawn beside a thread that opens and closes another file, and by both in turn.
IN_TURN = """#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
extern char** environ;
static volatile int is_over;
static void* open_and_close(void* unused) {
  while (!is_over) {
    int other = open("other", O_RDWR | O_CREAT, 0644);
    usleep(20);
    close(other);
  }
  return unused;
}
int main(int count, char** words) {
  int rounds = atoi(words[2]), how = atoi(words[3]), failed = 0;
  int file = open(words[4], O_RDWR | O_CREAT | O_TRUNC, 0644);
  pthread_t thread;
  if (how == 1) pthread_create(&thread, 0, open_and_close, 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, file, 1);
  char* arguments[] = {words[1], 0};
  for (int round = 0; round < rounds; ++round) {
    failed += write(file, "p", 1) != 1;
    pid_t child = -1;
    if (how == 1 || (how == 2 && round % 2)) {
      failed += posix_spawn(&child, words[1], &actions, 0, arguments, environ) != 0;
    } else if ((child = vfork()) == 0) {
      dup2(file, 1);
      execv(words[1], arguments);
      _exit(1);
    }
    waitpid(child, 0, 0);
  }
  is_over = 1;
  if (how == 1) pthread_join(thread, 0);
  return failed;
}
"""


def static_children_write_in_turn_with_their_parent():
    """Each has the file past the buffers for its own time, at an offset that all move."""
    work = under_cairn.work_directory("scarcity-programs")
    static, parent = compiled(work, "one-byte", ONE_BYTE, "-static"), compiled(work, "in-turn", IN_TURN, "-lpthread")
    assert static and parent, "the programs cannot be built"
    for how, rounds in ((0, 12), (1, 400), (2, 24)):
        Scene(f"in-turn-{how}", f"{parent} {static} {rounds} {how} f; echo $?; cat f").agree()
    under_cairn.remove(work)


LATE_BYTES = """#include <unistd.h>
int main(void) {
  if (fork() != 0) return 0;
  usleep(300000);
  return write(1, "LATE", 4) != 4;
}
"""

# A vfork child opens its parent's file anew, for a program whose own child writes last, or where no service can be
# asked.
OPENED_ANEW = """#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void start(const char* program, int how) {
  if (how == 1 && chroot(".") != 0) _exit(1);
  int file = open("f", O_WRONLY | O_APPEND);
  if (how == 1) _exit(write(file, "child", 5) != 5);
  dup2(file, 1);
  if (how == 2) close_range(3, ~0U, 0);
  if (how == 4 && vfork() == 0) close_range(3, ~0U, 0);
  else if (how == 4) _exit(0);
  if (how == 3) execl("/bin/sh", "sh", "-c", program, (char*)0);
  execl(program, program, (char*)0);
  _exit(1);
}
int main(int count, char** words) {
  int how = atoi(words[2]), failed = 0, status = 0;
  int file = open("f", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  failed += write(file, "0123456789", 10) != 10;
  pid_t child = vfork();
  if (child == 0) start(words[1], how);
  waitpid(child, &status, 0);
  failed += status != 0;
  failed += pwrite(file, "abc", 3, how == 1 ? 15 : 10) != 3;
  for (int tries = 0; tries < 500 && how != 1 && lseek(file, 0, SEEK_END) != 17; ++tries) usleep(10000);
  failed += pwrite(file, "QQ", 2, 20) != 2;
  return failed;
}
"""


def files_that_a_vfork_child_opens():
    """They are past the buffers until the last program is gone that has them from there."""
    work = under_cairn.work_directory("scarcity-programs")
    late, parent = compiled(work, "late", LATE_BYTES, "-static"), compiled(work, "anew", OPENED_ANEW)
    assert late and parent, "the programs cannot be built"
    for how, program in ((0, late), (1, late), (2, late), (3, f"{late}; true"), (4, late)):
        if how != 1 or os.geteuid() == 0:
            Scene(f"opened-anew-{how}", f"{parent} '{program}' {how}; od -c f").agree()
    under_cairn.remove(work)


def copied_root(work, program):
    """A directory that can be a root: a program with its libraries, and nothing of ours."""
    root = work / "root"
    (root / "bin").mkdir(parents=True)
    shutil.copy(program, root / "bin" / os.path.basename(program))
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    for word in listed.split():
        if word.startswith("/"):
            target = root / word.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(word, target)
    return root


def other_root():
    if os.geteuid() != 0:
        print("  without other_root: only root may chroot")
        return
    work = under_cairn.work_directory("scarcity-root")
    root = copied_root(work, "/bin/cat")
    (root / "data").mkdir()
    (root / "old").mkdir()
    # In a mount namespace of its own the managed directory is below the new root.
    inside = f"mount --bind . {root}/data && chroot {root} /bin/cat /data/f /data/g"
    pivoted = (f"mount --bind {root} {root} && mount --bind . {root}/data && cd {root} && "
               "pivot_root . old && exec /bin/cat /data/f /data/g")
    for start in (f"chroot {root} /bin/cat /data/f", f"unshare -m sh -c '{inside}'", f"unshare -m sh -c '{pivoted}'"):
        directory = under_cairn.work_directory("scarcity-chroot")
        shutil.copytree(root, directory / "root", symlinks=True)
        script = start.replace(str(root), str(directory / "root"))
        data = directory / "root/data"
        (work / "cairn.yaml").write_text(CONFIG)
        line = under_cairn.cairn_command(
            ["sh", "-c", f"printf 'of now' >f; printf ' and here' >g; {script}"], data,
            options=["--config", str(work / "cairn.yaml")])
        outcome = under_cairn.execute(line, data, 60, under_cairn.clean_environment())
        wanted = "of now" if start.startswith("chroot") else "of now and here"
        assert outcome.output == wanted, f"{start}: {outcome}: {outcome.output!r} {outcome.errors[-600:]} {directory}"
        assert "ld.so" not in outcome.errors, outcome.errors
        under_cairn.remove(directory)
    under_cairn.remove(work)


SANITIZED = """#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(void) {
  char* text = malloc(32);
  FILE* f = fopen("f", "r");
  text[fread(text, 1, 31, f)] = 0;
  fclose(f);
  puts(text);
  f = fopen("g", "w");
  fputs("from a sanitized program", f);
  fclose(f);
  free(text);
  return 0;
}
"""


def sanitized_programs():
    work = under_cairn.work_directory("scarcity-sanitized")
    shared = compiled(work, "shared", SANITIZED, "-fsanitize=address")
    inside = compiled(work, "inside", SANITIZED, "-fsanitize=address", "-static-libasan")
    if not shared:
        print("  without sanitized_programs: no AddressSanitizer here")
        return
    for program in filter(None, (shared, inside)):
        script = f"printf written >f; {program} && cat g; sh -c 'exec {program}' && printf more >>g; cat g"
        Scene("sanitized", script).agree()
    under_cairn.remove(work)


SCENES = [no_address_space, as_many_tiers_as_possible, more_processes_than_slots, offsets_of_inherited_files,
          an_offset_that_all_move, slow_service, stopped_service, dead_service, raw_exec_of_a_static_program,
          a_static_child_makes_its_file_append, static_children_write_in_turn_with_their_parent,
          files_that_a_vfork_child_opens, other_root, sanitized_programs]
