# SPDX-License-Identifier: Apache-2.0
"""The scenes of store_faults.py in which somebody outside touches a file that is not stored yet."""

import errno
import os
import subprocess

from scenes import (EXIT_NOT_STORED, PartNotHere, ask, kept_node, messages, need, need_status, output,
                    wait_until)
from store_runs import SIZE, finish_later, pattern, start_run


def outside(work, store, act, more="", status=0):
    """Writes a file that is stored at the end of the run, with `act(file)` in between."""
    run = start_run(work, store.path, f"""
        fd = os.open('f', os.O_RDWR | os.O_CREAT, 0o644); write(fd)
        open({str(work / 'written')!r}, 'w').close()
        wait_for('acted')
        print(os.pread(fd, 4096, 8192) == block, os.fstat(fd).st_size == {SIZE})
        {more}
        """, options=["--trigger", "on-exit"])
    wait_until((work / "written").exists, "the program has written")
    act(store.path / "f")
    (work / "acted").touch()
    need_status(run, status, work)
    need(output(work)[:2] == ["True", "True"], f"the program saw {output(work)}")


def scene_a_dirty_file_is_deleted(work, store):
    """As natively: who has it open reads and writes on, and it is gone with the last of them."""
    outside(work, store, lambda file: file.unlink(), "print(told(os.fsync, fd), told(os.close, fd))")
    need(output(work)[2:] == ["ok", "ok"], f"the program was told {output(work)}")
    need(not (store.path / "f").exists(), "the file is back")


def scene_a_dirty_file_is_replaced(work, store):
    """The new file of the name is another one, and stays as it is."""

    def replace(file):
        file.with_name("g").write_bytes(b"of somebody else")
        file.with_name("g").rename(file)

    outside(work, store, replace)
    need((store.path / "f").read_bytes() == b"of somebody else", "the new file was overwritten")


def scene_a_dirty_file_is_truncated_outside(work, store):
    """What the program wrote is newer than the cut that it does not know of."""
    outside(work, store, lambda file: os.truncate(file, 10))
    need((store.path / "f").read_bytes() == pattern(), "what is stored differs")


def scene_a_dirty_file_is_written_outside(work, store):
    """The same with bytes that somebody else has written."""
    outside(work, store, lambda file: file.write_bytes(b"of somebody else" * 1000))
    need((store.path / "f").read_bytes() == pattern(), "what is stored differs")


def scene_a_dirty_file_loses_its_permissions(work, store):
    """They count at an open, as natively; a program that has it open goes on."""
    outside(work, store, lambda file: file.chmod(0))
    need((store.path / "f").stat().st_mode & 0o777 == 0, "the permissions are back")
    need((store.behind / "f").read_bytes() == pattern(), "what is stored differs")


def change_attributes(change, file):
    return subprocess.run(["chattr", change, file], check=False, capture_output=True).returncode == 0


def can_be_immutable(probe):
    probe.touch()
    return change_attributes("+i", probe) and change_attributes("-i", probe)


def scene_a_dirty_file_is_made_immutable(work, _store):
    """Its last close tries to store it and says so. Where the node has tried before, each close and write does."""
    folder = work / "sound"  # FUSE passes no attributes on
    folder.mkdir()
    files = [folder / "f", folder / "g"]
    if not can_be_immutable(work / "probe"):
        raise PartNotHere("no file can be made immutable")
    run = start_run(work, folder, f"""
        f, g = [os.open(name, os.O_RDWR | os.O_CREAT, 0o644) for name in 'fg']
        other = os.open('f', os.O_RDWR)
        write(f); write(g)
        open({str(work / 'written')!r}, 'w').close()
        wait_for('acted')
        print(told(os.close, g))
        wait_for('tried')
        print(told(os.close, f), told(os.pwrite, other, b'x', 0), told(os.close, other))
        print(told(os.open, 'f', os.O_RDWR), open('f', 'rb').read(4096) == block)
        """, options=["--trigger", "on-exit"])
    wait_until((work / "written").exists, "the program has written")
    need(all([change_attributes("+i", file) for file in files]), "the files could not be made immutable")
    try:
        (work / "acted").touch()
        tried = ask("drain", "--node", f"run-{run.pid}")
        need(tried.status == EXIT_NOT_STORED, f"drain of a file that is immutable: {tried}")
        (work / "tried").touch()
        need_status(run, EXIT_NOT_STORED, work)
        need(output(work) == ["EPERM"] * 5 + ["True"], f"the program was told {output(work)}")
        need("sound/f:" in messages(work) and os.strerror(errno.EPERM) in messages(work),
             f"the file and the reason are not named: {messages(work)}")
    finally:
        for file in files:
            change_attributes("-i", file)
    finish_later(work, folder / "f")
    need((folder / "g").read_bytes() == pattern(), "what is stored of the second file differs")
