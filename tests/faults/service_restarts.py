#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The node service killed with SIGKILL again and again while programs work: its keeper starts another one each time,
which goes on with what the dead one had. Nothing is lost, no call fails, and the run ends as without any death.

    service_restarts.py [--seconds 6] [--seed S] [SCENE...]

Each scene is one program or script under `cairn run`, with a node of its own whose service is killed at random
instants until the program ends. What the program says and leaves behind is compared with a native run.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import under_cairn  # noqa: E402

LONG_SECONDS = 120
# A test kills more often than the keeper would put up with.
MANY_DEATHS = {"CAIRN_TEST_CAPACITIES": "deaths=1000000"}

# Writes, cuts, reads and stores records of three files, against a copy in its own memory.
MODEL = textwrap.dedent("""
    import os, random, sys, time
    seed, seconds = int(sys.argv[1]), float(sys.argv[2])
    draw = random.Random(seed)
    SIZE = 3 << 20
    files, models = {}, {}
    for name in 'abc':
        files[name] = os.open(name, os.O_RDWR | os.O_CREAT, 0o644)
        models[name] = bytearray()
    until = time.monotonic() + seconds
    steps = 0
    while time.monotonic() < until:
        steps += 1
        name = draw.choice('abc')
        file, model = files[name], models[name]
        what = draw.random()
        at, length = draw.randrange(SIZE), draw.choice((1, 100, 4096, 30000, 200000))
        if what < 0.45:
            data = bytes([draw.randrange(1, 256)]) * length
            assert os.pwrite(file, data, at) == length
            if len(model) < at:
                model.extend(bytes(at - len(model)))
            model[at:at + length] = data
        elif what < 0.85:
            data = os.pread(file, length, at)
            assert data == bytes(model[at:at + length]), f'seed {seed} step {steps}: {name} at {at}, {length} bytes'
        elif what < 0.88:
            os.ftruncate(file, at)
            del model[at:]
            model.extend(bytes(at - len(model)))
        elif what < 0.93:
            os.fsync(file)
        elif what < 0.97:
            os.close(file)
            files[name] = os.open(name, os.O_RDWR)
        else:
            assert os.fstat(file).st_size == len(model), f'seed {seed} step {steps}: size of {name}'
    for name, model in models.items():
        assert os.pread(files[name], SIZE * 2, 0) == bytes(model), f'seed {seed}: {name} at the end'
        open(sys.argv[3] + name, 'wb').write(bytes(model))
    print('steps', steps > 0)
    """)

# Processes that come and go, many of them while there is no service.
SHORT_PROCESSES = """
    for n in $(seq 150); do
      printf 'line %d of many\\n' $n >>log; printf %d $n >f$((n % 7)); cat f$((n % 7)) >>copies
      (cat log | tail -n 1; rm -f gone; echo x >gone) >>tails
    done
    cat log copies tails
    """

UNPACK = """
    for n in 1 2 3; do
      tar -cf - -C "$1" . | tar -xf - --one-top-level=t$n
      (cd t$n; find . -type f | sort | xargs cat) | cksum
    done
    cp -a t1 t4; rm -r t2; mv t3 t5; find . -type f | wc -l
    """

REPOSITORY = """
    git init -q r; cd r; git config user.email a@b; git config user.name a; cp -r "$1"/. .; git add -A
    git commit -qm one; for n in $(seq 8); do echo $n >>new; git add new; git commit -qm $n; done; cd ..
    git clone -q r s; cd s; git fsck --full 2>&1; git log --format=%s; git status --porcelain
    """

DATABASE = """
    sqlite3 d 'create table t(n integer primary key, s text)'
    for n in $(seq 120); do sqlite3 d "insert into t(s) values(hex(zeroblob($n * 50)))"; done
    sqlite3 d 'pragma integrity_check; select count(*), sum(length(s)) from t'
    """


# More threads ask for their data to be stored than the node's memory has places for questions: the others ask over
# connections of their own.
QUESTIONS = textwrap.dedent("""
    import os, sys, threading, time
    until, failed = time.monotonic() + float(sys.argv[1]), []
    def ask(number):
        writer = os.open(f'q{number}', os.O_RDWR | os.O_CREAT, 0o644)
        reader = os.open(f'q{number}', os.O_RDONLY)
        asked = 0
        while time.monotonic() < until:
            os.pwrite(writer, b'%06d' % asked * 100, 0)
            try:
                os.fsync(reader)
            except OSError as error:
                failed.append(f'{number}: question {asked}: {error}')
            asked += 1
    threads = [threading.Thread(target=ask, args=(number,)) for number in range(6)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    print(failed)
    """)


class Killer(threading.Thread):
    """Kills the service of the only node below `run_root` at random instants, each service once."""

    def __init__(self, run_root, draw):
        super().__init__(daemon=True)
        self.run_root, self.draw = run_root, draw
        self.kills, self.is_over = 0, threading.Event()

    def service(self):
        for file in self.run_root.glob("*/node.pid"):
            try:
                return int(file.read_text().split()[0])
            except (FileNotFoundError, IndexError, ValueError):
                pass
        return None

    def run(self):
        killed = None
        while not self.is_over.is_set():
            self.is_over.wait(self.draw.choice((0.0, 0.01, 0.05, 0.2)) * self.draw.random())
            service = self.service()
            is_ready = next(self.run_root.glob("*/control.sock"), None) is not None
            if service is None or service == killed or not is_ready:
                continue
            try:
                os.kill(service, signal.SIGKILL)
            except ProcessLookupError:
                continue
            killed = service
            self.kills += 1


class Stage:
    def __init__(self, name, seed):
        self.work = under_cairn.work_directory("restarts-" + name)
        self.draw = random.Random(seed)
        self.run_root = self.work / "run"
        self.run_root.mkdir(mode=0o700)
        for place in ("native", "cairn", "tier", "outside"):
            (self.work / place).mkdir()
        self.environment = under_cairn.clean_environment(
            {"CAIRN_RUN_ROOT": str(self.run_root), "XDG_STATE_HOME": str(self.work / "state"), **MANY_DEATHS})

    def run(self, command, ram="24M"):
        """Under Cairn, with deaths. Returns status, output, errors, and how many deaths there were."""
        line = under_cairn.cairn_command(command, self.work / "cairn", ram, [f"{self.work / 'tier'}:64M"])
        program = subprocess.Popen(line, cwd=self.work / "cairn", env=self.environment, text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   start_new_session=True)
        killer = Killer(self.run_root, self.draw)
        killer.start()
        try:
            out, err = program.communicate(timeout=LONG_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(program.pid, signal.SIGKILL)
            raise AssertionError(f"hangs after {killer.kills} deaths; {self.work}") from None
        finally:
            killer.is_over.set()
            killer.join()
        return program.returncode, out, err, killer.kills

    def compare(self, command, are_files_alike=True):
        native = subprocess.run(command, cwd=self.work / "native", env=under_cairn.clean_environment(), text=True,
                                capture_output=True, stdin=subprocess.DEVNULL, check=False)
        status, out, err, deaths = self.run(command)
        said = f"{deaths} deaths: status {status}: {err[-1500:]}; {self.work}"
        expected = (native.returncode, native.stdout)
        assert (status, out) == expected, f"{out[-600:]!r} is not {native.stdout[-600:]!r}; {said}"
        assert deaths, f"the service was never killed; {said}"
        if not are_files_alike:
            return deaths
        compare = ["diff", "-r", "--no-dereference", "--exclude=.git", "native", "cairn"]
        differences = subprocess.run(compare, cwd=self.work, text=True, capture_output=True, check=False).stdout
        assert not differences, f"{differences[:600]}; {said}"
        return deaths

    def remove(self):
        under_cairn.remove(self.work)


def model(stage, options):
    seed = stage.draw.randrange(1 << 30)
    outside = str(stage.work / "outside") + "/"
    status, out, err, deaths = stage.run([sys.executable, "-c", MODEL, seed, options.seconds, outside])
    said = f"{deaths} deaths: status {status}: {out[-300:]} {err[-1500:]}; {stage.work}"
    assert status == 0 and out == "steps True\n", said
    for name in "abc":
        stored = (stage.work / "cairn" / name).read_bytes()
        assert stored == (stage.work / "outside" / name).read_bytes(), f"{name} is not what was written; {said}"
    assert deaths, f"the service was never killed; {said}"
    return deaths


def short_processes(stage, _options):
    return stage.compare(["sh", "-c", SHORT_PROCESSES])


def unpacking(stage, _options):
    return stage.compare(["sh", "-c", UNPACK, "sh", str(HERE.parent.parent / "src")])


def repository(stage, _options):
    return stage.compare(["sh", "-c", REPOSITORY, "sh", str(HERE.parent.parent / "src/memory")])


def database(stage, _options):
    return stage.compare(["sh", "-c", DATABASE])


def questions(stage, options):
    capacities = stage.environment["CAIRN_TEST_CAPACITIES"]
    stage.environment["CAIRN_TEST_CAPACITIES"] = f"{capacities},requests=1"
    return stage.compare([sys.executable, "-c", QUESTIONS, str(options.seconds / 2)], are_files_alike=False)


SCENES = [model, short_processes, unpacking, repository, database, questions]
NEEDS = {repository: "git", database: "sqlite3"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("scene", nargs="*", help=", ".join(scene.__name__ for scene in SCENES))
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    if not under_cairn.have_cairn():
        return under_cairn.SKIPPED
    for scene in SCENES:
        if options.scene and scene.__name__ not in options.scene:
            continue
        if shutil.which(NEEDS.get(scene, "sh")) is None:
            print(f"skipped: {scene.__name__}: {NEEDS[scene]} is missing")
            continue
        stage = Stage(scene.__name__, options.seed)
        print(f"{scene.__name__} (--seed {options.seed}): ", end="", flush=True)
        print(f"{scene(stage, options)} deaths, as without", flush=True)
        stage.remove()
    return 0


if __name__ == "__main__":
    sys.exit(main())
