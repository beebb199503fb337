#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Nobody enters: places that others have prepared are refused, sockets answer their own user alone whatever their modes
allow, the memory files cannot be shrunk, and who may open a file the store decides at each open, also when its bytes
are in the tiers. The node is that of user 12346, others are user 12345 and root; without root there is nobody to be."""

import fcntl
import json
import os
import socket
import stat
import struct
import sys

from neighbour import Place, check, play, under_cairn
from shared_directory import HAS_OTHERS, OTHER, VICTIM, fork_as_other_user

AS_VICTIM = {"user": VICTIM, "group": VICTIM, "extra_groups": []}
F_GET_SEALS, F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_GROW = 1034, 1, 2, 4


def place_of_victim(name):
    place = Place(name)
    place.directory.chmod(0o755)
    for owned in (place.root, place.work):
        os.chown(owned, VICTIM, VICTIM)
    return place


def up(place, *words):
    started = place.cairn("up", "--name", "victim", "--ram", "16M", "--tier", "none", "--buffer", str(place.work),
                          *words, **AS_VICTIM)
    check(started.returncode == 0, f"cairn up fails: {started.stderr.decode()}")


def down(place):
    ended = place.cairn("down", "--node", "victim", **AS_VICTIM)
    check(ended.returncode == 0, f"cairn down fails: {ended.stderr.decode()}")


def is_refused(place, why, says, **options):
    run = place.cairn("run", "--no-report", "--tier", "none", "--ram", "8M", "--", "true", **AS_VICTIM, **options)
    check(run.returncode != 0, f"{why}: not refused")
    check(says in run.stderr.decode(), f"{why}: the message is {run.stderr.decode()!r}")


def prepared_run_roots_are_refused():
    with place_of_victim("strange-roots") as place:
        shared = place.directory / "shared"  # as /tmp is
        shared.mkdir()
        shared.chmod(0o1777)
        root = shared / "root"
        environment = {**place.environment, "CAIRN_RUN_ROOT": str(root)}
        elsewhere = place.directory / "elsewhere"
        elsewhere.mkdir()
        os.chown(elsewhere, VICTIM, VICTIM)
        elsewhere.chmod(0o700)

        def prepared(make, why, says):
            make()
            is_refused(place, why, says, env=environment)
            check(os.listdir(elsewhere) == [], f"{why}: something was made where it leads")
            (os.rmdir if root.is_dir() and not root.is_symlink() else os.unlink)(root)

        def owned(owner, mode):
            root.mkdir()
            os.chown(root, owner, owner)
            root.chmod(mode)

        prepared(lambda: root.symlink_to(elsewhere), "a link to a directory of the user's own", "is not a directory")
        prepared(lambda: owned(OTHER, 0o700), "another user's directory", "root")
        prepared(lambda: owned(OTHER, 0o1777), "another user's directory that all may write to", "belongs to user")
        prepared(lambda: owned(VICTIM, 0o755), "a directory that others may read", "open to other users")
        prepared(lambda: owned(VICTIM, 0o1777), "a directory that all may write to", "open to other users")
        prepared(lambda: os.mkfifo(root), "a pipe", "is not a directory")
        prepared(root.touch, "a file", "is not a directory")


def prepared_node_directories_are_refused():
    with place_of_victim("strange-nodes") as place:
        node = place.root / "victim"
        elsewhere = place.directory / "elsewhere"
        elsewhere.mkdir()
        os.chown(elsewhere, VICTIM, VICTIM)

        def owned(owner, mode):
            node.mkdir()
            os.chown(node, owner, owner)
            node.chmod(mode)

        for make, why in ((lambda: node.symlink_to(elsewhere), "a link"),
                          (lambda: owned(OTHER, 0o700), "another user's")):
            make()
            started = place.cairn("up", "--name", "victim", "--ram", "8M", "--tier", "none", **AS_VICTIM)
            check(started.returncode != 0 or not node.is_symlink(), f"a node directory that is {why} is used")
            check(started.returncode == 0 or started.stderr, f"{why}: nothing is said")
            check(os.listdir(elsewhere) == [], f"{why}: something was made where it leads")
            if started.returncode == 0:
                # One of the node's own is in its place.
                made = node.stat()
                check(made.st_uid == VICTIM and stat.S_IMODE(made.st_mode) == 0o700, f"{why}: still there")
                down(place)
                continue
            check(place.services() == [], f"{why}: a service is left")
            (os.unlink if node.is_symlink() else os.rmdir)(node)
        # One of the user's own that is open to all may have been used by all: another one takes its place.
        owned(VICTIM, 0o777)
        (node / "node.log").touch()
        up(place)
        check(stat.S_IMODE(node.stat().st_mode) == 0o700, "the node's directory is open to others")
        down(place)


def modes_do_not_depend_on_the_mask():
    with place_of_victim("strange-modes") as place:
        started = place.cairn("up", "--name", "victim", "--ram", "16M", "--tier", "none", "--buffer", str(place.work),
                              umask=0, **AS_VICTIM)
        check(started.returncode == 0, f"cairn up fails: {started.stderr.decode()}")
        node = place.root / "victim"
        for path in (place.root, node, *node.iterdir()):
            mode = stat.S_IMODE(path.lstat().st_mode)
            check(mode & 0o077 == 0, f"{path.name} has mode {mode:o}")
        for name in ("client.sock", "control.sock"):
            check(stat.S_IMODE((node / name).lstat().st_mode) == 0o600, f"{name} is not private")
        down(place)


def hear_as_other(path, kind, sent):
    """What another user hears who connects and says `sent`: bytes, or the name of an error."""
    heard, report = os.pipe()

    def talk():
        peer = socket.socket(socket.AF_UNIX, kind)
        peer.settimeout(10)
        peer.connect(path)
        try:
            peer.send(sent)
            os.write(report, b"heard:" + peer.recv(4096))
        except OSError as error:
            os.write(report, type(error).__name__.encode())

    child = fork_as_other_user(talk)
    os.close(report)
    os.waitpid(child, 0)
    with os.fdopen(heard, "rb") as stream:
        return stream.read()


def sockets_answer_their_user_alone():
    with place_of_victim("strange-peers") as place:
        up(place)
        node = place.root / "victim"
        # As if the user had been careless, or the file system knew no modes.
        for path in (place.root, node):
            path.chmod(0o755)
        for name in ("client.sock", "control.sock"):
            (node / name).chmod(0o666)
        # A greeting of the right length and version, as far as a stranger can know it.
        hello = struct.pack("<IHH", 0x4E524943, 4, 1) + bytes(92)
        status = json.dumps({"command": "status"}).encode() + b"\n"
        for name, kind, sent in (("client.sock", socket.SOCK_SEQPACKET, hello),
                                 ("control.sock", socket.SOCK_STREAM, status)):
            heard = hear_as_other(str(node / name), kind, sent)
            is_silent = heard in (b"heard:", b"ConnectionResetError", b"BrokenPipeError")
            check(is_silent, f"{name} tells a stranger {heard!r}")
        place.root.chmod(0o700)
        node.chmod(0o700)
        down(place)


def commands_do_not_talk_to_another_users_node():
    with place_of_victim("strange-node") as place:
        node = place.root / "victim"
        node.mkdir()
        node.chmod(0o777)
        heard, report = os.pipe()

        def pretend():
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            listener.bind(str(node / "control.sock"))
            os.chmod(node / "control.sock", 0o777)
            listener.listen(8)
            listener.settimeout(20)
            os.write(report, b"r")
            peer, _ = listener.accept()
            peer.settimeout(20)
            os.write(report, b"%d" % len(peer.recv(4096)))

        place.root.chmod(0o755)
        listener = fork_as_other_user(pretend)
        os.close(report)
        try:
            check(os.read(heard, 1) == b"r", "the other user does not listen")
            os.chown(node, VICTIM, VICTIM)
            place.root.chmod(0o700)
            asked = place.cairn("status", "--node", "victim", **AS_VICTIM)
            check(asked.returncode != 0, "cairn status believes another user's service")
            check(os.read(heard, 100) in (b"", b"0"), "a command has been sent to another user's service")
        finally:
            os.kill(listener, 9)
            os.waitpid(listener, 0)
            os.close(heard)


def memory_files_cannot_be_resized():
    with place_of_victim("strange-memory") as place:
        up(place)
        (service,) = place.services()
        found = 0
        for entry in os.listdir(f"/proc/{service}/fd"):
            path = f"/proc/{service}/fd/{entry}"
            if "memfd:cairn-" not in os.readlink(path):
                continue
            descriptor = os.open(path, os.O_RDWR)
            seals = fcntl.fcntl(descriptor, F_GET_SEALS)
            for seal in (F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_GROW):
                check(seals & seal, f"{os.readlink(path)} lacks seal {seal}")
            try:
                os.ftruncate(descriptor, 0)
                raise AssertionError(f"{os.readlink(path)} can be cut")
            except PermissionError:
                pass
            os.close(descriptor)
            found += 1
        check(found >= 2, f"{found} memory files")
        down(place)


READER = """
import os, sys
for name in sys.argv[1:]:
    try:
        with open(name, "rb") as file:
            print(name, len(file.read()))
    except OSError as error:
        print(name, type(error).__name__)
"""


def acl(*entries):
    """The extended attribute of an ACL: (tag, permissions, id)."""
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


def permissions_are_the_stores_at_each_open():
    with place_of_victim("strange-rights") as place:
        up(place)
        names = ["mode", "owner", "group", "acl", "kept"]
        written = place.cairn("run", "--no-report", "--node", "victim", "--", "python3", "-c",
                              "import sys\nfor name in sys.argv[1:]: open(name, 'wb').write(b'x' * 100000)", *names,
                              **AS_VICTIM)
        check(written.returncode == 0, f"the writer fails: {written.stderr.decode()}")
        # One program that has all of them open and in the tiers looks again while others change their rights.
        script = f"""
import os, sys
names = {names!r}
held = {{name: open(name, "rb") for name in names}}
for file in held.values():
    assert len(file.read()) == 100000
print("ready", flush=True)
sys.stdin.readline()
for name in names:
    try:
        with open(name, "rb") as file:
            print(name, len(file.read()))
    except OSError as error:
        print(name, type(error).__name__)
    held[name].seek(0)
    assert len(held[name].read()) == 100000, "an open descriptor lost its right"
"""
        program = place.start("run", "--no-report", "--node", "victim", "--", "python3", "-c", script, stdin=-1,
                              stdout=-1, stderr=-1, **AS_VICTIM)
        check(program.stdout.readline() == b"ready\n", "the program does not start")
        work = place.work
        (work / "mode").chmod(0)
        os.chown(work / "owner", OTHER, OTHER)
        (work / "owner").chmod(0o600)
        os.chown(work / "group", OTHER, VICTIM)
        (work / "group").chmod(0o604)  # the group is denied what others may do
        has_acl = True
        try:
            os.setxattr(work / "acl", "system.posix_acl_access",
                        acl((1, 6, 0xFFFFFFFF), (2, 0, VICTIM), (4, 6, 0xFFFFFFFF), (16, 6, 0xFFFFFFFF),
                            (32, 6, 0xFFFFFFFF)))
            os.chown(work / "acl", OTHER, OTHER)
        except OSError:
            has_acl = False
        output, errors = program.communicate(b"\n", timeout=60)
        check(program.returncode == 0, f"the program fails: {errors.decode()}")
        expected = ["mode PermissionError", "owner PermissionError", "group PermissionError",
                    "acl PermissionError" if has_acl else "acl 100000", "kept 100000"]
        check(output.decode().split("\n")[:-1] == expected, f"in the program: {output.decode()!r}")
        again = place.cairn("run", "--no-report", "--node", "victim", "--", "python3", "-c", READER, *names,
                            **AS_VICTIM)
        check(again.stdout.decode().split("\n")[:-1] == expected, f"in another: {again.stdout.decode()!r}")
        down(place)


HOSTILE_NAMES = [b"new\nline", b"\n", b"\x01\x1b[2J", b"\xff\xfe\xf8", b"q" * 255, "\u00e9".encode() * 127, b"-rf",
                 b"*?[",
                 b" ", b"'\"$(x)`", b"\\", b"...", b"%s%n"]

TREE = """
import os, sys
names = {names!r}
root = os.fsencode(sys.argv[1])
for number, name in enumerate(names):
    directory = os.path.join(root, name)
    os.mkdir(directory)
    path = os.path.join(directory, name)
    data = name * 400 + str(number).encode()
    with open(path, "wb") as file:
        file.write(data)
    back = os.path.join(directory, b"..", name, b".", b"..", name, name)
    with open(back, "rb") as file:
        assert file.read() == data, name
    os.rename(path, path[:-1] + b"~")
    with open(os.path.join(directory, name[:-1] + b"~"), "r+b") as file:
        assert file.read() == data, name
        file.write(b"end")
    os.symlink(name[:-1] + b"~", os.path.join(directory, b"link"))
    with open(os.path.join(directory, b"link"), "rb") as file:
        assert file.read() == data + b"end", name
"""


def hostile_names_are_names():
    with place_of_victim("strange-names") as place:
        up(place)
        run = place.cairn("run", "--no-report", "--node", "victim", "--", "python3", "-c",
                          TREE.format(names=HOSTILE_NAMES), ".", **AS_VICTIM)
        check(run.returncode == 0, f"the program fails: {run.stderr.decode(errors='replace')}")
        paths = [os.path.join(os.fsencode(place.work), name, name[:-1] + b"~") for name in HOSTILE_NAMES]
        for command in ("stage-in", "explain", "stage-out"):
            for path in paths:
                said = place.cairn(command, "--node", "victim", path, **AS_VICTIM)
                check(said.returncode == 0, f"{command} of {path[-20:]!r}: {said.returncode} {said.stderr[-400:]!r}")
                check(b"\x1b[2J" not in said.stdout + said.stderr, f"{command} lets a name speak to the terminal")
        status = place.cairn("status", "--node", "victim", "--json", **AS_VICTIM)
        check(status.returncode == 0, f"status: {status.stderr!r}")
        json.loads(status.stdout)
        down(place)
        for number, (name, path) in enumerate(zip(HOSTILE_NAMES, paths)):
            with open(path, "rb") as file:
                check(file.read() == name * 400 + str(number).encode() + b"end", f"{name!r} is not stored")
        log_file = place.root / "victim" / "node.log"
        log = log_file.read_bytes() if log_file.exists() else b""
        check(b"\x1b[2J" not in log, "a name speaks to the terminal from the log")


SWAPPED = """
import os, sys, time
end = time.monotonic() + 2
count = 0
while time.monotonic() < end:
    fd = os.open("link", os.O_RDWR)
    inode = str(os.fstat(fd).st_ino).encode().ljust(20)
    assert os.pread(fd, 20, 0) in (inode, b""), "bytes of another file"
    os.pwrite(fd, inode, (count % 50) * 5000)
    os.pwrite(fd, inode, 0)
    os.close(fd)
    count += 1
assert count > 20
"""


def a_link_that_others_turn_leads_to_one_file_at_a_time():
    with place_of_victim("strange-links") as place:
        up(place)
        for name in ("one", "two"):
            (place.work / name).write_bytes(b"")
            os.chown(place.work / name, VICTIM, VICTIM)
        (place.work / "link").symlink_to("one")
        program = place.start("run", "--no-report", "--node", "victim", "--", "python3", "-c", SWAPPED, stderr=-1,
                              **AS_VICTIM)
        turns = 0
        while program.poll() is None:
            (place.work / "next").symlink_to("two" if turns % 2 == 0 else "one")
            os.rename(place.work / "next", place.work / "link")
            turns += 1
        errors = program.stderr.read().decode()
        check(program.returncode == 0, f"the program fails: {errors}")
        down(place)
        for name in ("one", "two"):
            data = (place.work / name).read_bytes()
            own = str((place.work / name).stat().st_ino).encode()
            others = {word for word in data.replace(b"\0", b" ").split() if word != own}
            check(not others, f"{name} has bytes of {others} after {turns} turns")


def the_store_may_be_tricked_and_the_node_is_not():
    """A directory is swapped for a link out of the buffered tree while files are created in it."""
    with place_of_victim("strange-out") as place:
        up(place)
        outside = place.directory / "outside"
        outside.mkdir()
        os.chown(outside, VICTIM, VICTIM)
        (outside / "file").write_bytes(b"o" * 70000)
        os.chown(outside / "file", VICTIM, VICTIM)
        (place.work / "inside").symlink_to(outside)
        run = place.cairn("run", "--no-report", "--node", "victim", "--", "sh", "-c",
                          "cat inside/file | wc -c; printf new >inside/file; cat inside/file", **AS_VICTIM)
        check(run.stdout.split() == [b"70000", b"new"], f"{run.stdout!r} {run.stderr!r}")
        down(place)
        check((outside / "file").read_bytes() == b"new", "a file behind a link out of the tree is not as written")


if __name__ == "__main__":
    if not HAS_OTHERS:
        print("skipped: nobody else to be (root and a build that others can reach are needed)")
        sys.exit(under_cairn.SKIPPED)
    sys.exit(play([prepared_run_roots_are_refused, prepared_node_directories_are_refused,
                   modes_do_not_depend_on_the_mask, sockets_answer_their_user_alone,
                   commands_do_not_talk_to_another_users_node, memory_files_cannot_be_resized,
                   permissions_are_the_stores_at_each_open, hostile_names_are_names,
                   a_link_that_others_turn_leads_to_one_file_at_a_time,
                   the_store_may_be_tricked_and_the_node_is_not]))
