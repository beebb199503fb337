#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The machine dies under a node with a durable tier: programs, service and keeper are killed with SIGKILL at a random
instant, so that the arena and the pools are gone and only the store and the tier's directory are left. After `cairn
recover`, or after the start of another node on the tier, everything that was acknowledged is there.

    machine_death.py [--rounds 8] [--seed S] [--scene files|sqlite|clean|empty|all]

A program makes random calls on a few files; the test makes the same calls on a model, as far as the program says that
they have returned. For each file the model has the contents since the last acknowledged one: each of the file's slots
and its size have to be those of one of them. A file that was replaced by rename or by open(O_TRUNC) without fsync has
the new content as a whole.
"""

import argparse
import errno
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import under_cairn  # noqa: E402

SLOT = 256
FILES = 4
FILE_SLOTS = 1024  # 256 KiB
LONG_SECONDS = 60


class File:
    """One file of the model: `versions` are its contents since the one that is known to be durable."""

    def __init__(self, content=b""):
        self.versions = [content]
        self.mtime = None  # at the last acknowledged call, if nothing has changed since
        self.whole = False  # the file was replaced: no mixture is allowed

    def now(self):
        return self.versions[-1]

    def change(self, content):
        self.versions.append(content)
        self.mtime = None
        self.whole = False

    def made_durable(self):
        self.versions = [self.now()]

    def complaint(self, found):
        if self.whole:
            return None if found == self.now() else self.strange_content(found)
        sizes = {len(version) for version in self.versions}
        if len(found) not in sizes:
            return f"a size of {len(found)}, not one of {sorted(sizes)}"
        for at in range(0, len(found), SLOT):
            piece = found[at:at + SLOT]
            if not any(version[at:at + SLOT].ljust(len(piece), b"\0") == piece for version in self.versions):
                return (f"slot {at // SLOT} of {len(found) // SLOT} is none of {len(self.versions)} versions: "
                        f"{piece[:8]!r}")
        return None

    def strange_content(self, found):
        """Names the slots of a content other than the one that replaced the file, with the number of each run."""
        runs = []
        for at in range(0, len(found), SLOT):
            number = int.from_bytes(found[at:at + 8], "little")
            if not runs or runs[-1][1] != number:
                runs.append((at // SLOT, number))
        return (f"{len(found)} bytes, slots and numbers {runs}, not the {len(self.now())} "
                f"of {int.from_bytes(self.now()[:8], 'little')} that replaced it")


class Model:
    """Makes the same calls from the same seed, in the program and in the test."""

    def __init__(self, seed):
        self.draw = random.Random(seed)
        self.files = [File() for _ in range(FILES)]
        self.number = 0

    def bytes_of(self, slots):
        self.number += 1
        return b"".join(self.number.to_bytes(8, "little") * (SLOT // 8) for _ in range(slots))

    def next(self):
        """(name, index of the file, parameters). Applied by apply() once it is done."""
        draw = self.draw
        index = draw.randrange(FILES)
        size = len(self.files[index].now()) // SLOT
        kind = draw.choices(
            ["append", "write", "truncate", "fsync", "fdatasync", "dsync", "rename", "rewrite", "pause"],
            [8, 8, 1, 8, 4, 3, 2, 2, 1])[0]
        if kind == "append":
            return kind, index, (size * SLOT, self.bytes_of(draw.choice([1, 3, 16, 40])))
        if kind in ("write", "dsync"):
            return kind, index, (draw.randrange(size + 1) * SLOT, self.bytes_of(draw.choice([1, 16, 20])))
        if kind == "truncate":
            return kind, index, (draw.randrange(FILE_SLOTS) * SLOT if draw.random() < 0.5
                                 else draw.randrange(size + 1) * SLOT,)
        if kind in ("rename", "rewrite"):
            return kind, index, (self.bytes_of(draw.randrange(1, 80)),)
        return kind, index, (draw.random() * 0.03,)

    def apply(self, call, mtime=None):
        kind, index, parameters = call
        file = self.files[index]
        now = file.now()
        if kind in ("append", "write", "dsync"):
            at, data = parameters
            file.change((now[:at].ljust(at, b"\0") + data + now[at + len(data):]))
        elif kind == "truncate":
            file.change(now[:parameters[0]].ljust(parameters[0], b"\0"))
        elif kind in ("rename", "rewrite"):
            file.change(parameters[0])
        if kind in ("fsync", "fdatasync", "dsync", "rename", "rewrite"):
            file.made_durable()
        if kind in ("rename", "rewrite"):
            file.whole = True
        if kind in ("fsync", "fdatasync"):
            file.mtime = mtime


FAILED_AT = "a call failed at"


def await_death(problem):
    """Says when a call has failed: one that the log had to answer does, if the node has died before the program."""
    print(FAILED_AT, time.monotonic(), repr(problem), file=sys.stderr, flush=True)
    time.sleep(LONG_SECONDS)


def program(directory, seed):
    """Runs under Cairn: says each call that has returned."""
    try:
        work_until_death(directory, seed)
    except OSError as problem:
        if problem.errno != errno.EIO:
            raise
        await_death(problem)


def work_until_death(directory, seed):
    model = Model(seed)
    fds = []
    for index in range(FILES):
        fds.append(os.open(f"{directory}/file{index}", os.O_RDWR | os.O_CREAT, 0o644))
        os.fsync(fds[index])
    print("ready", flush=True)
    number = 0
    while True:
        call = model.next()
        kind, index, parameters = call
        path = f"{directory}/file{index}"
        if kind in ("append", "write"):
            assert os.pwrite(fds[index], parameters[1], parameters[0]) == len(parameters[1])
        elif kind == "dsync":
            fd = os.open(path, os.O_WRONLY | os.O_DSYNC)
            assert os.pwrite(fd, parameters[1], parameters[0]) == len(parameters[1])
            os.close(fd)
        elif kind == "truncate":
            os.ftruncate(fds[index], parameters[0])
        elif kind == "fsync":
            os.fsync(fds[index])
        elif kind == "fdatasync":
            os.fdatasync(fds[index])
        elif kind == "rename":
            os.close(fds[index])
            with open(path + ".new", "wb") as file:
                file.write(parameters[0])
            os.rename(path + ".new", path)
            fds[index] = os.open(path, os.O_RDWR)
        elif kind == "rewrite":
            os.close(fds[index])
            with open(path, "wb") as file:
                file.write(parameters[0])
            fds[index] = os.open(path, os.O_RDWR)
        else:
            time.sleep(parameters[0])
        model.apply(call)
        mtime = os.fstat(fds[index]).st_mtime_ns if kind in ("fsync", "fdatasync") else 0
        print(number, mtime, flush=True)
        number += 1


SQLITE_PROGRAM = """
import sqlite3, sys
sys.path.insert(0, sys.argv[3])
import machine_death
base = sqlite3.connect(sys.argv[1], isolation_level=None)
base.execute(f'PRAGMA journal_mode={sys.argv[2]}')
base.execute('PRAGMA synchronous=FULL')
base.execute('CREATE TABLE IF NOT EXISTS numbers (number INTEGER PRIMARY KEY, text TEXT)')
print('ready', flush=True)
number = base.execute('SELECT coalesce(max(number), 0) FROM numbers').fetchone()[0]
while True:
    number += 1
    try:
        base.execute('INSERT INTO numbers VALUES (?, ?)', (number, str(number) * 200))
    except sqlite3.OperationalError as problem:
        machine_death.await_death(problem)
    print(number, 0, flush=True)
"""


class Machine:
    """A store, a durable tier, and what runs on them until it dies."""

    def __init__(self, work, draw):
        self.work, self.store, self.tier, self.draw = work, work / "store", work / "tier", draw
        self.lives = 0
        self.store.mkdir()
        self.tier.mkdir(mode=0o700)

    def environment(self):
        run = self.work / f"run{self.lives}"
        run.mkdir(mode=0o700, exist_ok=True)
        return under_cairn.clean_environment(
            {"CAIRN_RUN_ROOT": str(run), "XDG_STATE_HOME": str(self.work / "state")})

    def cairn(self, *words, may_say=None):
        """`may_say`: what a command that ends with 74 may complain about."""
        outcome = under_cairn.execute([under_cairn.CAIRN, *words], self.work, LONG_SECONDS, self.environment())
        told = f"cairn {' '.join(map(str, words))}: {outcome} {outcome.output} {outcome.errors[-800:]}"
        is_expected = may_say and outcome.status == 74 and may_say in outcome.output + outcome.errors
        assert outcome.status == 0 or is_expected, told
        return outcome.output + outcome.errors

    def up(self):
        self.lives += 1
        delay = self.draw.choice(["20", "500", "3600000"])
        (self.work / "node.yaml").write_text(f"flush: {{delay_ms: {delay}}}\n")
        self.cairn("up", "--name", "n", "--config", self.work / "node.yaml", "--ram", "32M",
                   "--tier", f"{self.tier}:128M:durable", "--buffer", self.store)
        return delay

    def service(self):
        return int(next((self.work / f"run{self.lives}").rglob("node.pid")).read_text().split()[0])

    def start(self, *words):
        line = [under_cairn.CAIRN, "run", "--no-report", "--node", "n", "--", *words]
        return subprocess.Popen([str(word) for word in line], cwd=self.store, env=self.environment(), text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                start_new_session=True)

    def die(self, child):
        """All at once, in any order."""
        deaths = [lambda: under_cairn.strike_node(self.service()), lambda: os.killpg(child.pid, signal.SIGKILL)]
        self.draw.shuffle(deaths)
        process = os.pidfd_open(self.service())
        began = time.monotonic()
        for death in deaths:
            death()
        output, errors = child.communicate(timeout=LONG_SECONDS)
        import select
        ended, _, _ = select.select([process], [], [], LONG_SECONDS)
        assert ended, "the service outlives SIGKILL"
        os.close(process)
        failed = re.search(rf"^{FAILED_AT} ([0-9.]+) (.*)", errors, re.M)
        assert not failed or float(failed[1]) >= began, f"before any death: {failed[2]}"
        return output, errors

    def recover(self, is_renaming=False):
        """By the command, or by another node. A file that a rename has just replaced, of which the log has not heard,
        may count as one whose name somebody else has taken."""
        if self.draw.random() < 0.5:
            self.cairn("recover", self.tier, may_say="has no place (File exists)" if is_renaming else None)
            return "cairn recover"
        self.up()
        self.cairn("down", "--node", "n")
        return "a node"

    def expect_empty_log(self):
        text = self.cairn("recover", "--dry-run", self.tier)
        assert "everything is stored already" in text, f"a clean end leaves a log: {text}"


def lines_of(output):
    whole = output[:output.rfind("\n") + 1].splitlines()
    return [line.split() for line in whole if line[:1].isdigit()]


def await_ready(child):
    """Reads past the buffer of the stream: what that had read ahead, communicate() would not see."""
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(child.stdout.fileno(), 1)
        if not byte:
            break
        line += byte
    if line != b"ready\n":
        child.kill()
        raise AssertionError(f"the program did not begin: {line} {child.stderr.read()[-800:]}")


def round_of_files(work, draw):
    machine = Machine(work, draw)
    delay = machine.up()
    seed = draw.randrange(1 << 32)
    child = machine.start(sys.executable, __file__, "--program", machine.store, str(seed))
    await_ready(child)
    time.sleep(draw.random() * 1.5)
    output, errors = machine.die(child)
    assert "Traceback" not in errors, errors[-800:]
    done = lines_of(output)
    model = Model(seed)
    assert [int(number) for number, _ in done] == list(range(len(done))), "the program's words are incomplete"
    for _, mtime in done:
        model.apply(model.next(), int(mtime))
    under_way = model.next()
    how = machine.recover(under_way[0] == "rename")
    after = [list(file.versions) for file in model.files]
    whole = [file.whole for file in model.files]
    replaced = under_way[0] in ("rename", "rewrite")
    before = model.files[under_way[1]].now()
    model.apply(under_way)
    # The call under way may have done all, nothing, or, where it is a write, a part.
    under = model.files[under_way[1]]
    under.versions = after[under_way[1]] + [under.now()]
    under.whole = False
    for index, file in enumerate(model.files):
        path = machine.store / f"file{index}"
        found = path.read_bytes()
        if index == under_way[1] and replaced:
            if under_way[0] == "rewrite":
                file.versions.append(b"")  # it is cut, and not closed yet
            complaint = None if found == under_way[2][0] else file.complaint(found)
        elif index == under_way[1] and whole[index]:
            complaint = file.complaint(found)
        else:
            complaint = file.complaint(found)
        assert not complaint, f"{path}: {complaint} (after {len(done)} calls, under way {under_way[:2]}, by {how})"
        if file.mtime and index != under_way[1]:
            assert path.stat().st_mtime_ns == file.mtime, \
                f"{path}: the time is {path.stat().st_mtime_ns} and was {file.mtime} (by {how})"
    strange = [name for name in os.listdir(machine.store) if "recovered" in name]
    assert not strange, f"somebody else's changes that nobody made: {strange}"
    del before
    return f"{len(done)} calls, flush.delay_ms {delay}, {how}"


def round_of_sqlite(work, draw):
    machine = Machine(work, draw)
    mode = draw.choice(["DELETE", "TRUNCATE", "PERSIST", "WAL"])
    if mode == "WAL":
        mode = "TRUNCATE"  # maps its index, which is past the tiers
    last = 0
    told = []
    for _ in range(2):
        delay = machine.up()
        child = machine.start(sys.executable, "-c", SQLITE_PROGRAM, machine.store / "base.sqlite", mode, HERE)
        await_ready(child)
        time.sleep(0.1 + draw.random() * 0.8)
        output, errors = machine.die(child)
        assert "Traceback" not in errors, errors[-800:]
        last = max([last] + [int(number) for number, _ in lines_of(output)])
        how = machine.recover()
        base = sqlite3.connect(machine.store / "base.sqlite")
        assert base.execute("PRAGMA integrity_check").fetchall() == [("ok",)], f"the base is broken (by {how})"
        rows = base.execute("SELECT number, text FROM numbers ORDER BY number").fetchall()
        base.close()
        assert [number for number, _ in rows] == list(range(1, len(rows) + 1)), "rows are missing"
        assert all(text == str(number) * 200 for number, text in rows)
        assert len(rows) in (last, last + 1), f"{len(rows)} rows, acknowledged {last} (by {how}, journal {mode})"
        last = len(rows)
        told.append(f"{len(rows)} rows, flush.delay_ms {delay}, {how}")
    return f"journal {mode}: " + "; ".join(told)


def clean_end(work, draw):
    """A node that ends in order leaves nothing in its log."""
    machine = Machine(work, draw)
    machine.up()
    script = "import os\nf = os.open('f', os.O_RDWR | os.O_CREAT)\nos.write(f, b'x' * 100000)\nos.fsync(f)\n"
    child = machine.start(sys.executable, "-c", script)
    child.communicate(timeout=LONG_SECONDS)
    machine.cairn("down", "--node", "n")
    assert (machine.store / "f").read_bytes() == b"x" * 100000
    machine.expect_empty_log()
    return "the log is empty"


def empty_file(work, draw):
    """A program that writes a file anew that was there and empty replaces it: its content is there as a whole."""
    machine = Machine(work, draw)
    (machine.store / "f").touch()
    machine.up()
    script = ("import time\nwith open('f', 'wb') as f: f.write(b'x' * 100000)\n"
              f"print('ready', flush=True)\ntime.sleep({LONG_SECONDS})\n")
    child = machine.start(sys.executable, "-c", script)
    await_ready(child)
    machine.die(child)
    how = machine.recover()
    found = (machine.store / "f").read_bytes()
    assert found == b"x" * 100000, f"{len(found)} bytes, {found[:8]!r}, not what replaced an empty file (by {how})"
    return f"the new content, {how}"


SCENES = {"files": round_of_files, "sqlite": round_of_sqlite, "clean": clean_end, "empty": empty_file}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--scene", choices=["all", *SCENES], default="all")
    parser.add_argument("--program", nargs=2)
    options = parser.parse_args()
    if options.program:
        return program(options.program[0], int(options.program[1]))
    if not under_cairn.have_cairn():
        print("no build")
        return under_cairn.SKIPPED
    scenes = list(SCENES) if options.scene == "all" else [options.scene]
    for number in range(options.rounds):
        scene = scenes[number % len(scenes)]
        seed = options.seed + number
        work = under_cairn.work_directory("machine-death")
        try:
            told = SCENES[scene](work, random.Random(seed))
        except BaseException:
            print(f"{scene}: --rounds 1 --scene {scene} --seed {seed}; left in {work}", flush=True)
            raise
        print(f"{scene} (seed {seed}): {told}", flush=True)
        under_cairn.remove(work)
    return 0


if __name__ == "__main__":
    sys.exit(main())
