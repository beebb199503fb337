#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What another user has put beforehand into a directory that both may write to: he must not read what a node puts
into its tiers, and a client must not talk to a socket of his. The other user is uid 12345 where this runs as root, in a
build that others can reach; else the file is merely there before, which is what matters."""

import os
import socket
import stat
import subprocess
import sys

from neighbour import Place, check, play, under_cairn

OTHER, VICTIM = 12345, 12346


def others_may_enter(directory):
    return all(place.stat().st_mode & 0o001 for place in (directory, *directory.parents))


# In a build below root's own home, say, nobody else gets anywhere.
HAS_OTHERS = os.geteuid() == 0 and others_may_enter(under_cairn.BUILD) and others_may_enter(under_cairn.SOURCE)


def fork_as_other_user(body):
    """A child of another user that does not execute anything, which it might not be allowed to. Its process id."""
    child = os.fork()
    if child != 0:
        return child
    status = 1
    try:
        if HAS_OTHERS:
            os.setgroups([])
            os.setresgid(OTHER, OTHER, OTHER)
            os.setresuid(OTHER, OTHER, OTHER)
        os.umask(0)
        body()
        status = 0
    finally:
        os._exit(status)


def tier_files_made_beforehand_are_not_used():
    with Place("shared-pool") as place:
        shared = place.directory / "shared"
        shared.mkdir()
        shared.chmod(0o1777)
        place.directory.chmod(0o755)
        files = [shared / "cairn-victim.pool", shared / ".cairn-victim.swap"]
        descriptors = []
        # A node of root could remove the other user's files first.
        victim = {}
        if HAS_OTHERS:
            victim = {"user": VICTIM, "group": VICTIM, "extra_groups": []}
            for owned in (place.root, place.work):
                os.chown(owned, VICTIM, VICTIM)
        for file in files:
            child = fork_as_other_user(lambda f=file: os.close(os.open(f, os.O_RDWR | os.O_CREAT, 0o666)))
            check(os.waitpid(child, 0)[1] == 0, f"{file} cannot be made")
            descriptors.append(os.open(file, os.O_RDWR))
        started = place.cairn("up", "--name", "victim", "--ram", "1M", "--tier", f"{shared}:16M", "--swap", "16M",
                              "--buffer", str(place.work), "--trigger", "on-exit", **victim)
        check(started.returncode == 0, f"cairn up fails: {started.stderr.decode()}")
        writer = place.cairn("run", "--no-report", "--node", "victim", "--", "sh", "-c",
                             "yes SECRET | head -c 4000000 >f; cp f g; cmp f g", **victim)
        check(writer.returncode == 0, f"the program fails: {writer.stderr.decode()}")
        for file, descriptor in zip(files, descriptors):
            seen = os.pread(descriptor, 1 << 25, 0)
            check(b"SECRET" not in seen, f"another user reads the data of the tiers in {file.name}")
            os.close(descriptor)
        check(place.cairn("down", "--node", "victim", **victim).returncode == 0, "cairn down fails")
        check((place.work / "f").read_bytes().startswith(b"SECRET\n"), "the file is not stored")


def a_tier_in_a_shared_directory_has_no_name():
    with Place("shared-name") as place:
        shared = place.directory / "shared"
        shared.mkdir()
        started = place.cairn("up", "--name", "victim", "--ram", "1M", "--tier", f"{shared}:16M")
        check(started.returncode == 0, f"cairn up fails: {started.stderr.decode()}")
        check(os.listdir(shared) == [], "a pool bears a name")
        (service,) = place.services()
        pools = []
        for entry in os.listdir(f"/proc/{service}/fd"):
            try:
                status = os.stat(f"/proc/{service}/fd/{entry}")
            except OSError:
                continue
            # The buckets, and the superblock before them.
            if stat.S_ISREG(status.st_mode) and status.st_size == (16 << 20) + (64 << 10):
                pools.append(status)
        check(pools and all(s.st_nlink == 0 and s.st_mode & 0o077 == 0 for s in pools), "a pool is open to others")
        check(place.cairn("down", "--node", "victim").returncode == 0, "cairn down fails")


def listen_and_say_what_comes(path, report):
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(path)
    listener.listen(8)
    listener.settimeout(20)
    os.write(report, b"r")
    peer, _ = listener.accept()
    peer.settimeout(20)
    os.write(report, b"%d" % len(peer.recv(4096)))


def a_client_says_nothing_to_another_user():
    if not HAS_OTHERS:
        return  # nobody else to be
    with Place("shared-socket") as place:
        lair = place.directory / "lair"
        lair.mkdir()
        place.directory.chmod(0o755)
        os.chown(lair, OTHER, OTHER)
        heard, report = os.pipe()
        listener = fork_as_other_user(lambda: listen_and_say_what_comes(str(lair / "client.sock"), report))
        os.close(report)
        try:
            check(os.read(heard, 1) == b"r", "the other user does not listen")
            library = under_cairn.BUILD / "lib/libcairn_preload.so"
            environment = {**place.environment, "LD_PRELOAD": str(library), "CAIRN_RUN": "1",
                           "CAIRN_SOCKET": str(lair / "client.sock"), "CAIRN_BUFFER": str(place.work)}
            subprocess.run(["sh", "-c", "echo secret >f; cat f"], cwd=place.work, env=environment, timeout=60,
                           capture_output=True, check=False)
            said = os.read(heard, 100)
            check(said in (b"", b"0"), f"a program has sent {said.decode()} bytes to another user's socket")
        finally:
            os.kill(listener, 9)
            os.waitpid(listener, 0)
            os.close(heard)


if __name__ == "__main__":
    sys.exit(play([tier_files_made_beforehand_are_not_used, a_tier_in_a_shared_directory_has_no_name,
                   a_client_says_nothing_to_another_user]))
