#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What becomes of data when the device of a file tier misbehaves.

    tier_faults.py --store PROGRAM [SCENE ...]

The scenes have the names of the rows of the table "A tier, row by row" in docs/semantics.md, and no row is without one.
The tier's pool file lies in the file system of faulty_store.c (PROGRAM), which obeys a file of rules; the backing store
is sound. Where FUSE may not be mounted the test is skipped.
"""

import contextlib
import errno
import os
import sys
import textwrap
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from scenes import (  # noqa: E402
    EXIT_NOT_STORED, Failure, ask, kept_node, launch, messages, mounted, need, need_status, output,
    run_scenes_of_a_store, status_of, under_cairn, wait_until)

PAGE = 4096
BLOCK = 65536


def page(number):
    """No two pages of a file are alike, nor like those of a pool's superblock."""
    return (b"cairn page %8d " % number * 205)[:PAGE]


def pages(first, past):
    return b"".join(page(number) for number in range(first, past))


class Machine:
    """A store, a device that obeys, and the run of a program between them."""

    def __init__(self, work, program):
        self.work, self.store = work, work / "sound"
        self.store.mkdir()
        (work / "device").mkdir()
        self.device = mounted(work / "device", program)
        self.run = None

    def start(self, program, tiers=(), ram="0", options=(), environment=None):
        """`cairn run` of a Python program in the store. Its wait_for('NAME') ends when the scene says go('NAME')."""
        script = self.work / "program.py"
        script.write_text("import errno, os, time\n"
                          f"PAGE = {PAGE}\n"
                          "def page(n): return (b'cairn page %8d ' % n * 205)[:PAGE]\n"
                          "def write(fd, first, past):\n"
                          "    for n in range(first, past): os.pwrite(fd, page(n), n * PAGE)\n"
                          "def is_there(fd, first, past):\n"
                          "    return all(os.pread(fd, PAGE, n * PAGE) == page(n) for n in range(first, past))\n"
                          "def told(call, *arguments):\n"
                          "    try: call(*arguments); return 'ok'\n"
                          "    except OSError as error: return errno.errorcode[error.errno]\n"
                          f"def reached(name): open({str(self.work)!r} + '/' + name, 'w').close()\n"
                          "def wait_for(name):\n"
                          "    reached('before-' + name)\n"
                          f"    while not os.path.exists({str(self.work)!r} + '/' + name): time.sleep(0.02)\n"
                          + textwrap.dedent(program))
        configuration = self.work / "cairn.yaml"
        configuration.write_text("flush: {retry_ms: 200}\n")
        command = under_cairn.cairn_command([sys.executable, "-u", script], self.store, ram=ram,
                                            tiers=tiers or [f"{self.device.path}:16M"], options=options)
        command[2:2] = ["--config", str(configuration)]
        self.run = launch(command, self.work, self.store, environment)

    def wait_until_before(self, name):
        """The program waits there."""
        wait_until(lambda: (self.work / f"before-{name}").exists() or self.run.poll() is not None, name)
        need(self.run.poll() is None, f"the program ended before {name}: {messages(self.work)[-1500:]}")

    def go(self, name):
        (self.work / name).touch()

    def status(self):
        return status_of(f"run-{self.run.pid}")

    def tier(self, at=1):
        return self.status()["tiers"][at]

    def tier_is_empty(self):
        """But for the room that a thread of the program has taken to put its next block there."""
        status = self.status()
        tier = status["tiers"][1]
        return tier["dirty_bytes"] == 0 and tier["used_bytes"] <= min(status["leased_slabs"], 1) * (64 << 10)

    def wait_until_out_of_service(self):
        wait_until(lambda: self.tier()["state"].startswith("out of service"), "the tier leaves service", 30)

    def place_of(self, number):
        """Where the pool file has that page."""
        for file in self.device.behind.iterdir():
            data = file.read_bytes()
            at = data.find(page(number))
            if at >= 0:
                need(at % PAGE == 0, f"page {number} lies at {at}")
                return at
        raise Failure(f"page {number} is not in the tier")

    def need_stored(self, first, past, name="f"):
        stored = (self.store / name).read_bytes()[first * PAGE:past * PAGE]
        need(stored == pages(first, past), f"pages {first} to {past} of {name} are stored otherwise")

    def close(self):
        self.device.close()


# ---- reading -----------------------------------------------------------------------------------------------


def scene_clean_data_of_a_failing_tier(machine):
    """It is read again from the store, and the program sees nothing."""
    (machine.store / "f").write_bytes(pages(0, 256))
    machine.start("""
        fd = os.open('f', os.O_RDONLY)
        print(is_there(fd, 0, 256))
        wait_for('failure')
        print(is_there(fd, 0, 256), os.pread(fd, 1 << 20, 0) == b''.join(page(n) for n in range(256)))
        wait_for('end')
        """)
    machine.wait_until_before("failure")
    need(machine.tier()["used_bytes"] >= 256 * PAGE, "the file is not in the tier")
    machine.device.obey("read 5")
    machine.go("failure")
    machine.wait_until_before("end")
    need(machine.tier()["failures"] > 0, f"no failure is counted: {machine.tier()}")
    machine.go("end")
    need_status(machine.run, 0, machine.work)
    need(output(machine.work) == ["True"] * 3, f"the program saw {output(machine.work)}")


def scene_dirty_data_of_a_failing_tier(machine):
    """EIO for exactly the pages that are lost; they are named, the rest is stored, and the tier's return mends it."""
    lost = 37
    machine.start(f"""
        fd = os.open('f', os.O_RDWR | os.O_CREAT); write(fd, 0, 256)
        wait_for('failure')
        print(told(os.pread, fd, PAGE, {lost} * PAGE), told(os.pread, fd, 1, {lost} * PAGE + 100),
              is_there(fd, 0, {lost}), is_there(fd, {lost} + 1, 256), len(os.pread(fd, 16 * PAGE, 32 * PAGE)) // PAGE)
        print(told(os.fsync, fd), told(os.close, fd))
        """, options=["--trigger", "on-exit"])
    machine.wait_until_before("failure")
    begin = machine.place_of(lost)
    machine.device.obey(f"read 5 * {begin} {begin + PAGE}")
    machine.go("failure")
    need_status(machine.run, EXIT_NOT_STORED, machine.work)
    need(output(machine.work)[:5] == ["EIO", "EIO", "True", "True", "5"], f"the program saw {output(machine.work)}")
    need(output(machine.work)[5] == "EIO", f"fsync and close said {output(machine.work)[5:]}")
    named = f"bytes {lost * PAGE}-{(lost + 1) * PAGE - 1}"
    need("/f:" in messages(machine.work) and named in messages(machine.work),
         f"{named} are not named: {messages(machine.work)[-1500:]}")
    machine.need_stored(0, lost)
    machine.need_stored(lost + 1, 256)
    unstored = machine.status()["unstored"]
    need([(entry["errno"], entry["unreadable"]) for entry in unstored] ==
         [(errno.EIO, [{"offset": lost * PAGE, "length": PAGE}])], f"cairn status lists {unstored}")
    need(named in ask("status", "--node", f"run-{machine.run.pid}").output, "the text of cairn status")
    machine.device.obey()
    drained = ask("drain", "--node", kept_node(machine.work))
    need(drained.status == 0, f"drain after the repair: {drained} {drained.errors[-800:]}")
    machine.need_stored(0, 256)


# ---- writing -----------------------------------------------------------------------------------------------


def writes_fall_back(machine, number):
    """The program is told nothing; what it writes is elsewhere, and right."""
    machine.start("""
        fd = os.open('f', os.O_RDWR | os.O_CREAT); write(fd, 0, 128)
        wait_for('failure')
        for n in range(64, 320): os.pwrite(fd, page(n), n * PAGE)
        os.pwrite(fd, b'changed', 3 * PAGE + 7)
        print(is_there(fd, 0, 3), os.pread(fd, 7, 3 * PAGE + 7), is_there(fd, 4, 320))
        wait_for('end')
        print(told(os.fsync, fd), told(os.close, fd))
        """, options=["--trigger", "on-exit"])
    machine.wait_until_before("failure")
    machine.device.obey(f"write {number}")
    machine.go("failure")
    machine.wait_until_before("end")
    need(machine.tier()["last_error"] == os.strerror(number), f"not counted: {machine.tier()}")
    machine.go("end")
    need_status(machine.run, 0, machine.work)
    need(output(machine.work) == ["True", "b'changed'", "True", "ok", "ok"], f"it saw {output(machine.work)}")
    machine.need_stored(0, 3)
    machine.need_stored(4, 320)


def scene_a_tier_fails_at_a_write(machine):
    writes_fall_back(machine, errno.EIO)


def scene_a_tier_has_no_room(machine):
    writes_fall_back(machine, errno.ENOSPC)


def scene_moves_into_a_failing_tier(machine):
    """What the tier does not take stays in RAM, or is stored; the program writes on."""
    machine.start("""
        fd = os.open('f', os.O_RDWR | os.O_CREAT); write(fd, 0, 64)
        wait_for('failure')
        write(fd, 64, 4096)
        print(is_there(fd, 0, 4096))
        """, ram="4M")
    machine.wait_until_before("failure")
    machine.device.obey("write 5")
    machine.go("failure")
    need_status(machine.run, 0, machine.work)
    need(output(machine.work) == ["True"], f"the program saw {output(machine.work)}")
    machine.need_stored(0, 4096)


# ---- leaving service ---------------------------------------------------------------------------------------


def scene_a_tier_leaves_service(machine):
    """Its data moves to the next tier, and what is reserved of it; placement passes it over; the user is told."""
    other = machine.work / "other"
    other.mkdir(mode=0o700)
    machine.start("""
        fd = os.open('f', os.O_RDWR | os.O_CREAT); write(fd, 0, 512)
        wait_for('failure')
        write(fd, 500, 600)
        wait_for('more')
        write(fd, 600, 1000)
        print(is_there(fd, 0, 1000))
        wait_for('end')
        """, tiers=[f"{machine.device.path}:16M", f"{other}:16M"],
                  options=["--trigger", "on-exit", "--reserve", "2M"])
    machine.wait_until_before("failure")
    before = machine.status()
    name, next_name = before["tiers"][1]["name"], before["tiers"][2]["name"]
    need(before["tiers"][1]["dirty_bytes"] == 512 * PAGE, f"the data is not in the tier: {before['tiers']}")
    need(before["tiers"][1]["state"] == "in service", f"{before['tiers'][1]}")
    machine.device.obey("write 5")
    machine.go("failure")
    machine.wait_until_before("more")
    machine.wait_until_out_of_service()
    wait_until(machine.tier_is_empty, "the tier is empty", 30, found=machine.tier)
    after = machine.status()
    moved = [move for move in after["moves"] if move["from"] == name and move["to"] == next_name]
    need([move["reason"] for move in moved] == ["tier failed"], f"moves: {after['moves']}")
    reserved = {tier["name"]: tier["reserved_bytes"] for tier in after["runs"][0]["tiers"]}
    need((reserved[name], reserved[next_name]) == (0, 2 << 20), f"reserved: {reserved}")
    warnings = " ".join(after["warnings"])
    need("out of service" in warnings and str(machine.device.path) in warnings, f"warnings: {after['warnings']}")
    told = ask("status", "--node", f"run-{machine.run.pid}").output
    need(f"tier {name} is out of service" in told and os.strerror(errno.EIO) in told, told)
    machine.device.obey()  # what has failed is not trusted again
    machine.go("more")
    machine.wait_until_before("end")
    need(machine.tier_is_empty(), "placement does not pass the tier over")
    need(machine.tier(2)["used_bytes"] > 900 * PAGE, f"{machine.tier(2)}")
    machine.go("end")
    need_status(machine.run, 0, machine.work)
    need(output(machine.work) == ["True"], f"the program saw {output(machine.work)}")
    machine.need_stored(0, 1000)


def scene_a_tier_is_gone(machine):
    """One operation is enough. What was dirty there alone is EIO and named; the node answers and ends."""
    machine.start("""
        fd = os.open('f', os.O_RDWR | os.O_CREAT); write(fd, 0, 64)
        wait_for('failure')
        print(told(os.pread, fd, PAGE, 0))
        write(fd, 64, 128)
        print(is_there(fd, 64, 128))
        """, options=["--trigger", "on-exit"])
    machine.wait_until_before("failure")
    machine.device.obey(f"any {errno.ENODEV}")
    machine.go("failure")
    need_status(machine.run, EXIT_NOT_STORED, machine.work)
    need(output(machine.work) == ["EIO", "True"], f"the program saw {output(machine.work)}")
    need(machine.tier()["state"] == "out of service", f"{machine.tier()}")
    need(f"bytes 0-{64 * PAGE - 1}" in messages(machine.work), messages(machine.work)[-1500:])
    machine.need_stored(64, 128)
    ended = ask("down", "--node", f"run-{machine.run.pid}", "--discard")
    need(ended.status == 0, f"cairn down --discard: {ended} {ended.errors}")


def scene_a_tier_hangs(machine):
    """The service waits for its patience, and then no longer: the node works on without the tier."""
    machine.start("""
        fd = os.open('f', os.O_RDWR | os.O_CREAT)
        wait_for('failure')
        write(fd, 0, 970)  # so that RAM is short of room, and nothing has to go below at once
        wait_for('more')
        print(is_there(fd, 0, 970), told(os.fsync, fd))
        write(fd, 970, 3000)
        print(is_there(fd, 0, 3000), told(os.fsync, fd))
        wait_for('end')
        """, ram="4M", options=["--trigger", "on-exit"],
                  environment={"CAIRN_TEST_CAPACITIES": "tier_patience_ms=1000"})
    machine.wait_until_before("failure")
    machine.device.obey("write hang", "read hang")
    machine.go("failure")
    machine.wait_until_before("more")
    machine.wait_until_out_of_service()
    need(machine.tier()["last_error"] == os.strerror(errno.ETIMEDOUT), f"{machine.tier()}")
    need("does not answer" in machine.tier()["state"], f"{machine.tier()}")
    machine.go("more")
    machine.wait_until_before("end")
    need(output(machine.work) == ["True", "ok"] * 2, f"the program saw {output(machine.work)}")
    machine.need_stored(0, 3000)
    machine.device.obey()
    wait_until(lambda: machine.tier()["state"] == "out of service", "the service finds that it answers", 30)
    machine.go("end")
    need_status(machine.run, 0, machine.work)


LOGGED = """
    fd = os.open('f', os.O_RDWR | os.O_CREAT); write(fd, 100, 124); os.fsync(fd)
    wait_for('failure')
    write(fd, 0, 124)
    for n in range(24): os.pwrite(fd, page(n), (n + 100) * PAGE)
    """


def recover(machine):
    done = ask("recover", str(machine.device.path))
    return done, (machine.store / "f").read_bytes()[100 * PAGE:] == pages(0, 24)


def scene_the_log_of_a_durable_tier_fails(machine):
    """The store gets everything, and the log is void: its older bytes do not come back."""
    machine.start(LOGGED, tiers=[f"{machine.device.path}:64M:durable"], ram="4M", options=["--trigger", "on-exit"])
    machine.wait_until_before("failure")
    machine.device.obey(f"write {errno.EIO} log.1")
    machine.go("failure")
    need_status(machine.run, 0, machine.work)
    machine.device.obey()
    done, is_newer = recover(machine)
    need(done.status == 0 and is_newer, f"cairn recover brings older bytes: {done} {done.errors}")


def scene_a_file_is_removed_after_the_log_has_failed(machine):
    """The log does not hear of that any more. It may be a database's journal, which must not come back, no more than
    one that was removed before."""
    machine.start("""
    earlier = os.open('earlier', os.O_RDWR | os.O_CREAT); write(earlier, 0, 24); os.fsync(earlier)
    os.close(earlier)
    os.unlink('earlier')
    journal = os.open('journal', os.O_RDWR | os.O_CREAT); write(journal, 0, 24); os.fsync(journal)
    """ + LOGGED + """
    print(told(os.fsync, fd))
    os.close(journal)
    os.unlink('journal')
    """, tiers=[f"{machine.device.path}:64M:durable"], ram="4M", options=["--trigger", "on-exit"])
    machine.wait_until_before("failure")
    machine.device.obey(f"write {errno.EIO} log.1")
    machine.go("failure")
    need_status(machine.run, 0, machine.work)
    need(output(machine.work) == ["EIO"], f"the program saw {output(machine.work)}")
    machine.device.obey()
    done, is_newer = recover(machine)
    need(done.status == 0 and is_newer, f"cairn recover: {done} {done.errors}")
    left = {path.name for path in machine.store.iterdir()}
    need(left == {"f"}, f"there are {left} after recovery: {done.output} {done.errors}")


def scene_the_log_of_a_durable_tier_cannot_be_voided(machine):
    """The end says that the log has older bytes than the store, and where."""
    machine.start(LOGGED, tiers=[f"{machine.device.path}:64M:durable"], ram="4M", options=["--trigger", "on-exit"])
    machine.wait_until_before("failure")
    machine.device.obey(f"write {errno.EIO}", f"fsync {errno.EIO}")
    machine.go("failure")
    need_status(machine.run, EXIT_NOT_STORED, machine.work)
    need(str(machine.device.path) in messages(machine.work) and "older bytes" in messages(machine.work),
         messages(machine.work)[-1500:])
    need((machine.store / "f").read_bytes()[100 * PAGE:] == pages(0, 24), "the store lacks something")


def main():
    return run_scenes_of_a_store(globals(), lambda work, program: contextlib.closing(Machine(work, program)),
                                 "A tier, row by row")


if __name__ == "__main__":
    sys.exit(main())
