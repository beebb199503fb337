#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What sync(), times, modes and attributes promise.

    run.py [stores | outside | modes | names]

`stores`: sync() and syncfs() store what anybody of the node wrote. `outside`: what somebody outside the run finds,
and how a change of his is found. `modes`: programs (twins/) that do the same natively and under Cairn and must print
the same; most of it needs root. `names`: the same of files that are open by names of all kinds.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE.parent / "modes"))
import under_cairn  # noqa: E402
from puppet import holds, pattern, soon  # noqa: E402
from scene import CREATE, Check, Node  # noqa: E402

# Nothing is stored by itself within a scene: one that waits for that runs into its time limit.
SLOW = "flush:\n  delay_ms: 3600000\n"
SIZE = 300_000
# sync() waits for all file systems of the machine, also for what other tests write to slow devices meanwhile.
SYNC_SECONDS = 240


class Skip(Exception):
    pass


def need_root():
    if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "true"], check=False).returncode:
        raise Skip("needs root and the right to mount")


def second(path):
    return os.stat(path).st_mtime_ns // 10**9


# ---- stores ------------------------------------------------------------------------------------------------


def sync_stores_what_others_wrote():
    for words in ("sync", "sync -f .", "sync -f open", f"{sys.executable} -c 'import os; os.sync()'"):
        with Check("sync", "--trigger", "on-exit", config=SLOW) as check:
            opened = check.open("open")
            closed = check.open("closed")
            check.puppet.call("pwrite", opened, pattern(1), 0)
            check.puppet.call("pwrite", closed, pattern(2), 0)
            check.puppet.call("close", closed)
            assert not holds(check.path("open"), pattern(1)), "stored too early for this scene"
            assert check.puppet.call("shell", words) == 0
            assert holds(check.path("open"), pattern(1)), f"`{words}` returned before the open file was stored"
            assert holds(check.path("closed"), pattern(2)), f"`{words}` returned before the closed file was stored"
            check.end()


def sync_of_one_file_stores_it():
    with Check("sync-file", config=SLOW) as check:
        file = check.open("a")
        check.puppet.call("pwrite", file, pattern(1), 0)
        assert check.puppet.call("shell", "sync a") == 0
        assert holds(check.path("a"), pattern(1))
        check.end()


class Mounted:
    """A tmpfs of some megabytes."""

    def __init__(self, path, megabytes):
        self.path = path
        path.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(path)], check=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", "-l", str(self.path)], check=True)


SYNCFS = """
import ctypes, errno, os, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
def syncfs(path):
    fd = os.open(path, os.O_RDONLY)
    result = libc.syncfs(fd), errno.errorcode.get(ctypes.get_errno(), 0)
    os.close(fd)
    return result
"""


def syncfs_reports_what_cannot_be_stored():
    need_root()
    work = under_cairn.work_directory("promises-full")
    with Mounted(work / "small", 4) as small:
        (work / "other").mkdir()
        program = SYNCFS + """
fd = os.open('small/big', os.O_RDWR | os.O_CREAT)
os.write(fd, b'x' * (8 << 20))
other = os.open('other/a', os.O_RDWR | os.O_CREAT)
os.write(other, b'y' * 1000)
if os.fork() == 0:
    print(*syncfs('small')); sys.stdout.flush()
    ctypes.set_errno(0)
    print(*syncfs('other')); sys.stdout.flush()
    os.sync()
    os._exit(0)
os.wait()
os.ftruncate(fd, 1000)
print(*(syncfs('small')))
"""
        command = under_cairn.cairn_command([sys.executable, "-c", program], small.path, ram="64M",
                                            options=["--buffer", str(work / "other")])
        outcome = under_cairn.execute(command, work, SYNC_SECONDS)
        said = outcome.output.split("\n")[:3]
        assert said == ["-1 ENOSPC", "0 0", "0 0"], f"{said} {outcome.errors[-500:]}"
        assert outcome.status == 0
    under_cairn.remove(work)


def syncfs_of_a_dead_node_fails_with_what_others_wrote():
    """The service, which alone could store it, is killed: a success would be a lie."""
    program = SYNCFS + """
def parent(pid):
    try:
        return int(open(f'/proc/{pid}/stat').read().rsplit(')')[1].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return 0  # a process of another test, which has ended since the listing
fd = os.open('a', os.O_RDWR | os.O_CREAT)
os.write(fd, b'x' * 1000)
wait, go = os.pipe()
child = os.fork()
if child == 0:
    os.close(fd)
    os.read(wait, 1)
    print(*syncfs('.'), flush=True)
    os._exit(0)
launcher = os.getppid()
# The keeper of the node is the launcher's child, and the service is the keeper's.
of_node = [int(pid) for pid in os.listdir('/proc') if pid.isdigit() and int(pid) not in (os.getpid(), child)
           and launcher in (parent(pid), parent(parent(pid)))]
# At once: a service that hears of its keeper's death starts another.
for number in (signal.SIGSTOP, signal.SIGKILL):
    for pid in of_node:
        os.kill(pid, number)
os.write(go, b'.')
os.wait()
os.fsync(fd)
print(*syncfs('.'), flush=True)
"""
    work = under_cairn.work_directory("promises-dead")
    (work / "slow.yaml").write_text(SLOW)
    (work / "data").mkdir()
    command = under_cairn.cairn_command([sys.executable, "-c", program], work / "data",
                                        options=["--config", str(work / "slow.yaml")])
    outcome = under_cairn.execute(command, work / "data", SYNC_SECONDS)
    assert outcome.output.split("\n")[:2] == ["-1 EIO", "0 0"], f"{outcome.output!r} {outcome.errors[-500:]}"
    under_cairn.remove(work)


# ---- outside -----------------------------------------------------------------------------------------------


def expect_unfinished(check, name, data):
    """The file is closed but not stored: whoever copies it by size and time now does so again later."""
    size, mtime_ns, _ = check.puppet.call("stat", str(check.path(name)))
    early = os.stat(check.path(name))
    assert size == len(data) == early.st_size
    assert not holds(check.path(name), data), "stored too early for this scene"
    assert abs(early.st_mtime_ns - mtime_ns) > 2 * 10**9, "the store bears the time of data that it does not have"
    assert early.st_mtime_ns <= time.time_ns()
    if mtime_ns > 10**10:
        assert early.st_mtime_ns < mtime_ns, "a copy that goes by newer ones would not be refreshed"
    assert check.puppet.call("shell", "sync") == 0
    assert holds(check.path(name), data)
    assert os.stat(check.path(name)).st_mtime_ns == mtime_ns, "the file's own time is there with its data"
    assert check.puppet.call("stat", str(check.path(name)))[1] == mtime_ns, "a write-back changes no time"


def copies_taken_too_early_are_old():
    with Check("early", config=SLOW) as check:
        name = check.path("a")
        (check.directory / "a").write_bytes(b"")
        for step, stamp in enumerate((None, 1_323_785_716_171_819_000, 1, 0, None)):
            data = pattern(step + 1, SIZE)  # from the second one on in place, with the same size
            file = check.open("a")
            check.puppet.call("pwrite", file, data, 0)
            if stamp is not None:
                check.puppet.call("utime", str(name), stamp)
            check.puppet.call("close", file)
            if stamp is not None:
                assert check.puppet.call("stat", str(name))[1] == stamp
            expect_unfinished(check, "a", data)
        check.end()


def touched_before_it_is_stored():
    with Check("touched", config=SLOW) as check:
        data = pattern(1, SIZE)
        file = check.open("a")
        check.puppet.call("pwrite", file, data, 0)
        check.puppet.call("close", file)
        check.puppet.call("utime", str(check.path("a")), 981_173_106_000_000_001)
        expect_unfinished(check, "a", data)
        check.end()


def rsync_refreshes_what_it_took_too_early():
    with Check("rsync", config=SLOW) as check:
        data = pattern(1, SIZE)
        file = check.open("a")
        check.puppet.call("pwrite", file, data, 0)
        check.puppet.call("close", file)
        copy = check.work / "copy"
        command = ["rsync", "-tu", str(check.path("a")), str(copy)]
        try:
            subprocess.run(command, check=True)
        except FileNotFoundError:
            raise Skip("there is no rsync") from None
        assert copy.read_bytes() != data
        assert check.puppet.call("shell", "sync") == 0
        subprocess.run(command, check=True)
        assert copy.read_bytes() == data, "what was copied too early was taken for up to date"
        check.end()


def a_mapping_leaves_the_files_own_time():
    with Check("through", config=SLOW) as check:
        file = check.open("a")
        check.puppet.call("pwrite", file, pattern(1), 0)
        check.puppet.call("close", file)
        mtime_ns = check.puppet.call("stat", str(check.path("a")))[1]
        program = "import mmap, os; m = mmap.mmap(os.open('a', os.O_RDWR), 4096); print(m[0])"
        assert check.puppet.call("shell", f"{sys.executable} -c \"{program}\" >/dev/null") == 0
        assert os.stat(check.path("a")).st_mtime_ns == mtime_ns
        check.end()


def a_dead_node_leaves_no_finished_time():
    node = Node(variables={"CAIRN_FLUSH_DELAY_MS": "3600000"})
    puppet = node.puppet()
    path = node.directory / "a"
    file = puppet.call("open", str(path), CREATE)
    puppet.call("pwrite", file, pattern(1), 0)
    puppet.call("close", file)
    mtime_ns = puppet.call("stat", str(path))[1]
    under_cairn.strike_node(node.status()["service_pid"])
    puppet.kill()
    assert not holds(path, pattern(1))
    assert abs(os.stat(path).st_mtime_ns - mtime_ns) > 2 * 10**9
    under_cairn.remove(node.work)


def changes_outside_that_keep_size_and_time_are_seen():
    with Node() as node:
        puppet = node.puppet()
        path = node.directory / "a"
        path.write_bytes(pattern(1))
        before = os.stat(path)

        def read():
            file = puppet.call("open", str(path), os.O_RDONLY)
            data = puppet.call("pread", file, len(pattern(1)), 0)
            puppet.call("close", file)
            return data

        assert read() == pattern(1)
        with open(path, "r+b") as file:
            file.write(pattern(2))
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert read() == pattern(2), "what somebody outside wrote and dated back was not noticed"
        assert puppet.end() == 0


def what_the_node_does_itself_costs_no_cache():
    with Node() as node:
        puppet = node.puppet()
        path = node.directory / "a"
        path.write_bytes(pattern(1))
        file = puppet.call("open", str(path), os.O_RDWR)
        puppet.call("pread", file, len(pattern(1)), 0)
        puppet.call("pwrite", file, pattern(3, 5000), 100)
        puppet.call("fsync", file)
        puppet.call("close", file)
        resident = sum(node.tiers_of("a").values())
        assert resident >= len(pattern(1))
        for words in ("chmod 600 a", "ln a b", "mv b c", "rm c", "touch a", "touch -d 2001-02-03 a", "mv a b; mv b a",
                      f"{sys.executable} -c 'import os; os.chown(\"a\", os.getuid(), os.getgid())'",
                      "cp -p a d; touch -r d a", "tar cf t.tar a", "rsync -a a e",
                      f"{sys.executable} -c 'import os; os.utime(\"a\")'"):
            assert puppet.call("shell", words) == 0, words
            puppet.call("close", puppet.call("open", str(path), os.O_RDONLY))
            assert sum(node.tiers_of("a").values()) >= resident, f"after `{words}` the file was read anew"
        assert puppet.end() == 0


# ---- modes -------------------------------------------------------------------------------------------------


def same_twice(name, make_place, before=(), around=(), options=()):
    """Runs a twin natively and under Cairn, each in a fresh directory, and compares what they print. `before` are words
    before the program, `around` those before the run."""
    script = HERE / "twins" / f"{name}.py"
    said = []
    for is_native in (True, False):
        work = under_cairn.work_directory(f"promises-{name}")
        with make_place(work / "data") as place:
            words = [*before, sys.executable, str(script)]
            command = words if is_native else under_cairn.cairn_command(words, place.path, options=options)
            outcome = under_cairn.execute([*around, *command], place.path, 120)
            if outcome.output.startswith("skip"):
                raise Skip(outcome.output.strip())
            assert outcome.status == 0, f"{outcome} {outcome.output[-300:]} {outcome.errors[-900:]}"
            said.append(outcome.output.split("\n"))
        under_cairn.remove(work)
    differences = [f"{a!r}, under Cairn {b!r}" for a, b in zip(*said, strict=False) if a != b]
    assert said[0] == said[1], "; ".join(differences[:6]) or f"{len(said[0])} lines, {len(said[1])}"


class Folder:
    def __init__(self, path):
        self.path = path
        path.mkdir()
        path.chmod(0o777)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run(["chattr", "-R", "-f", "-ai", str(self.path)], check=False, capture_output=True)


def set_id_bits_by_root():
    need_root()
    same_twice("set_id", Folder)


def set_id_bits_without_the_capability():
    need_root()
    same_twice("set_id", Folder, before=["setpriv", "--inh-caps=-fsetid", "--bounding-set=-fsetid"])


def set_id_bits_outlive_the_write_back():
    """The node has no more rights than a user's: the kernel takes the bits away when it writes."""
    need_root()
    same_twice("set_id_own", Folder, around=["setpriv", "--inh-caps=-fsetid", "--bounding-set=-fsetid"])


def set_id_bits_from_outside_end_with_a_users_write():
    """The node is root's; the writer has become nobody since it opened the file."""
    need_root()
    with Check("set-id") as check:
        path = check.path("a")
        file = check.open("a")
        check.puppet.call("pwrite", file, pattern(1), 0)
        check.puppet.call("fsync", file)
        check.puppet.call("become", 65534)
        path.chmod(0o4777)
        check.puppet.call("pwrite", file, pattern(2), 0)
        assert soon(lambda: holds(path, pattern(2)))
        assert path.stat().st_mode & 0o7777 == 0o777
        check.end()


def capabilities_end_with_a_write():
    need_root()
    same_twice("capability", Folder)


def append_only_files_grow():
    need_root()
    same_twice("append_only", Folder)


def immutable_files_refuse():
    need_root()
    same_twice("immutable", Folder)


def offsets_beyond_all_block_numbers():
    same_twice("huge", Folder)
    need_root()
    same_twice("huge", lambda path: Mounted(path, 16))


# ---- names -------------------------------------------------------------------------------------------------


def files_open_before_they_are_managed():
    around = ["sh", "-c", 'exec "$@" 7<>outside.log', "sh"]
    same_twice("opened_before", Folder, around=around, options=["--exclude", "*.log"])


def programs_just_written_run():
    same_twice("just_written", Folder)


PARTS = {
    "stores": [sync_stores_what_others_wrote, sync_of_one_file_stores_it, syncfs_reports_what_cannot_be_stored,
               syncfs_of_a_dead_node_fails_with_what_others_wrote],
    "outside": [copies_taken_too_early_are_old, touched_before_it_is_stored, rsync_refreshes_what_it_took_too_early,
                a_mapping_leaves_the_files_own_time, a_dead_node_leaves_no_finished_time,
                changes_outside_that_keep_size_and_time_are_seen, what_the_node_does_itself_costs_no_cache],
    "modes": [set_id_bits_by_root, set_id_bits_without_the_capability, set_id_bits_outlive_the_write_back,
              set_id_bits_from_outside_end_with_a_users_write,
              capabilities_end_with_a_write, append_only_files_grow, immutable_files_refuse,
              offsets_beyond_all_block_numbers],
    "names": [files_open_before_they_are_managed, programs_just_written_run],
}


def main():
    if not under_cairn.have_cairn():
        print(f"skipped: {under_cairn.CAIRN} is not built")
        return under_cairn.SKIPPED
    failed = passed = 0
    names = sys.argv[1:] or list(PARTS)
    scenes = [scene for part in PARTS.values() for scene in part if scene.__name__ in names]
    for scene in scenes or [scene for name in names for scene in PARTS[name]]:
        began = time.monotonic()
        try:
            scene()
            passed += 1
            print(f"passed {scene.__name__} ({time.monotonic() - began:.1f} s)", flush=True)
        except Skip as reason:
            print(f"skipped {scene.__name__}: {reason}", flush=True)
        except (AssertionError, OSError, KeyError) as problem:
            failed += 1
            print(f"FAILED {scene.__name__}: {problem}", flush=True)
    if failed:
        return 1
    return 0 if passed else under_cairn.SKIPPED


if __name__ == "__main__":
    sys.exit(main())
