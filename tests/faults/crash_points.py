#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each named crash point (src/base/crash_point.h) of service, keeper and client in turn: the process that comes by dies
by SIGKILL, at the first visit, the second and later ones, in several workloads. Acknowledged bytes are all there
afterwards, nothing hangs, and the exit status is true.

    crash_points.py --worker PROGRAM [--kills 240] [--seconds 110] [--jobs 1] [--seed S] [--only PREFIX] [--list]

The points are read from the programs as they were built, so a new one is tried without being named here. One that no
workload visits is reported; it is an error when it is in none of the lists below.
"""

import argparse
import contextlib
import fcntl
import mmap
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
import under_cairn  # noqa: E402
from crash_workloads import (  # noqa: E402
    DURABLE, DURABLE_CHECKS, EXIT_NOT_STORED, LEFT, NEEDS, RECORDS, WORKLOADS, check_records, durable_records)

LONG_SECONDS = 120
CLIENT, SERVICE = 0, 1
PROGRESS_KILLS = 1000
SIDES = {CLIENT: "client", SERVICE: "service"}
NAME_BYTES, POINTS = 52, 512
HEAD = struct.Struct(f"<IIIII{NAME_BYTES}s")
POINT = struct.Struct(f"<{NAME_BYTES}sIII")
MAGIC = 0x63726173
VISITS = (1, 2, 3, 7, 20, 100)
# With a service dies nobody else, its keeper, or everybody.
ALONE, WITH_KEEPER, WITH_ALL = range(3)
# They come after a death, which the driver deals out.
AFTER_A_DEATH = ("takeover.", "service.files-adopted", "service.clients-adopted", "service.connections-adopted",
                 "service.runs-adopted", "keeper.", "rescue.")
# On the way of a program that has outlived service and keeper.
ALONE_IN_THE_WORLD = "orphan."
# Whether somebody dies as soon as the program is at work, wherever that may be.
NOBODY_FIRST, SERVICE_FIRST, NODE_FIRST = range(3)
# Only where something has gone wrong, or by chance: not visited is no failure.
RARE = ("block.redirtied", "block.write-lost", "block.lost-place", "flush.extended",
        "rescue.ending", "files.dropping", "block.cut-valid", "log.freed", "log.segment-")


class Page:
    """The file that driver and processes have in common; see CrashPage in src/base/crash_point.h."""

    def __init__(self, path):
        self.path = path
        size = HEAD.size + POINTS * POINT.size
        path.write_bytes(bytes(size))
        self.file = open(path, "r+b")
        self.bytes = mmap.mmap(self.file.fileno(), size)
        self.choose("", 0, CLIENT)

    def choose(self, name, visit, side, with_parent=False):
        self.bytes[HEAD.size:] = bytes(POINTS * POINT.size)
        self.bytes[:HEAD.size] = HEAD.pack(MAGIC, int(with_parent), visit, side, 0, name.encode())

    def deaths(self):
        return HEAD.unpack(self.bytes[:HEAD.size])[4]

    def visits(self):
        found = {}
        for at in range(HEAD.size, len(self.bytes), POINT.size):
            name, is_named, *visits = POINT.unpack(self.bytes[at:at + POINT.size])
            if is_named:
                for side in SIDES:
                    key = (name.rstrip(b"\0").decode(), side)
                    found[key] = found.get(key, 0) + visits[side]
        return found

    def close(self):
        self.bytes.close()
        self.file.close()


def points_of(path):
    """The strings of the section `cairn_crash_points` of an ELF file."""
    data = path.read_bytes()
    table, = struct.unpack_from("<Q", data, 40)
    size, count, names = struct.unpack_from("<HHH", data, 58)
    sections = [struct.unpack_from("<IIQQQQ", data, table + size * number) for number in range(count)]
    text = sections[names][4]
    found = set()
    for name, _, _, _, offset, length in sections:
        start = text + name
        if data[start:data.index(b"\0", start)] == b"cairn_crash_points":
            found |= {each.decode() for each in data[offset:offset + length].split(b"\0") if each}
    return found


def listed_points():
    libraries = [under_cairn.BUILD / "lib" / name for name in ("libcairn_preload.so", "cairn/commands.so")]
    files = [under_cairn.CAIRN, *libraries]
    return sorted(set().union(*(points_of(file) for file in files if file.exists())))


def parent_of(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


class Stage:
    """One run of a workload, with a death or without."""

    def __init__(self, work, options, workload, number):
        self.options, self.workload = options, workload
        self.work = work / f"{workload.__name__}-{number}"
        for name in ("data", "logs", "run", "tier"):
            (self.work / name).mkdir(parents=True, mode=0o700)
        self.data, self.logs = self.work / "data", self.work / "logs"
        self.line = [str(word) for word in workload(options, self.logs)]

    def native(self):
        self.leave(0)
        return subprocess.run(self.line, cwd=self.data, env=under_cairn.clean_environment(), text=True,
                              capture_output=True, stdin=subprocess.DEVNULL, check=False).stdout

    def leave(self, which):
        if self.workload in LEFT:
            LEFT[self.workload][which](self)
        self.left = {path.name for path in self.data.iterdir()}

    def run(self, page, deaths_max, first, company=ALONE):
        self.leave(1)
        environment = under_cairn.clean_environment({
            "CAIRN_RUN_ROOT": str(self.work / "run"), "XDG_STATE_HOME": str(self.work / "state"),
            "CAIRN_CRASH_PAGE": str(page.path), "CAIRN_TEST_CAPACITIES": f"deaths={deaths_max}"})
        # A RAM tier that does not hold all of it: blocks move.
        tier = f"{self.work / 'tier'}:" + ("128M:durable" if self.workload in DURABLE else "8M")
        line = under_cairn.cairn_command(self.line, self.data, "2M", [tier])
        process = subprocess.Popen(line, cwd=self.data, env=environment, text=True, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        if first != NOBODY_FIRST:
            threading.Thread(target=self.kill_once, args=(first, process), daemon=True).start()
        if company == WITH_ALL:
            threading.Thread(target=self.kill_all_after, args=(page, process), daemon=True).start()
        try:
            self.out, self.errors = process.communicate(timeout=LONG_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            for service in self.services():
                under_cairn.kill_node(service)
            raise AssertionError("hangs") from None
        self.status = process.returncode

    def services(self):
        for file in (self.work / "run").glob("*/node.pid"):
            try:
                yield int(file.read_text().split()[0])
            except (FileNotFoundError, IndexError, ValueError):
                pass

    def await_end_of_services(self):
        """One that was killed holds its tier for a moment."""
        for file in (self.work / "run").glob("*/node.pid"):
            with open(file, encoding="ascii") as held:
                until = time.monotonic() + LONG_SECONDS
                while time.monotonic() < until:
                    try:
                        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        break
                    except BlockingIOError:
                        time.sleep(0.005)

    def kill_once(self, first, process):
        while process.poll() is None:
            for service in self.services():
                try:
                    # The program is at work.
                    if all(path.name in self.left for path in self.data.iterdir()):
                        continue
                    if first == NODE_FIRST:
                        keeper = parent_of(service)
                        os.kill(keeper, signal.SIGSTOP)  # it begins no other service
                        os.kill(keeper, signal.SIGKILL)
                    os.kill(service, signal.SIGKILL)
                    return
                except (FileNotFoundError, ProcessLookupError):
                    pass
            time.sleep(0.002)

    def kill_all_after(self, page, process):
        """The programs and `cairn run` follow the service and its keeper."""
        while process.poll() is None:
            if page.deaths():
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                return
            time.sleep(0.0005)

    def differences(self, native):
        compare = ["diff", "-r", "--no-dereference", native.data, self.data]
        return subprocess.run(compare, text=True, capture_output=True, check=False).stdout[:600]


class Driver:
    def __init__(self, options):
        self.options, self.draw = options, random.Random(options.seed)
        self.work = under_cairn.work_directory("crash-points")
        self.number, self.kills, self.visited = 0, 0, {}
        self.natives, self.killed, self.failures = {}, set(), []
        self.lock = threading.Lock()  # of what all jobs count and draw
        self.workloads = [each for each in WORKLOADS if shutil.which(NEEDS.get(each, "sh"))]

    def stage(self, workload):
        with self.lock:
            self.number += 1
            number = self.number
        return Stage(self.work, self.options, workload, number)

    def learn(self):
        """Which points a workload visits, and how often; with a death of the service and without. Some lie on a way
        that a workload takes only if it meets another process in time: on a busy machine it has three tries."""
        page = Page(self.work / "page")
        for _ in range(3):
            self.learn_once(page)
            if not self.unvisited():
                break
        page.close()

    def learn_once(self, page):
        for workload in self.workloads:
            native = self.stage(workload)
            self.natives[workload] = (native, native.native())
            ways = [(NOBODY_FIRST, 1000000), (SERVICE_FIRST, 1000000), (SERVICE_FIRST, 1)]
            for first, deaths_max in ways + [(NODE_FIRST, 1)] * (workload is durable_records):
                stage = self.stage(workload)
                page.choose("", 0, CLIENT)
                stage.run(page, deaths_max, first)
                for key, visits in page.visits().items():
                    if visits:
                        known = self.visited.setdefault(key, {})
                        known[workload] = max(known.get(workload, 0), visits)
                death = (SERVICE, 1, True, False) if first == NODE_FIRST else None
                self.judge(stage, f"{workload.__name__} without a death at a point", death)

    def cases(self):
        found = []
        for (name, side), workloads in self.visited.items():
            if self.options.only and not name.startswith(self.options.only):
                continue
            for workload, visits in workloads.items():
                if side == CLIENT and workload not in RECORDS:
                    continue
                for visit in VISITS:
                    if visit <= visits:
                        found.append((name, side, workload, visit, ALONE))
                if side == SERVICE and not name.startswith("keeper."):
                    is_checked = workload in DURABLE_CHECKS
                    companies = (WITH_KEEPER, WITH_ALL) if is_checked else (WITH_KEEPER,)
                    found += [(name, side, workload, visit, company) for company in companies
                              for visit in ((1, 3) if is_checked else (1,)) if visit <= visits]
        self.draw.shuffle(found)
        # Each point once before any is tried again.
        seen, first, later = set(), [], []
        for case in found:
            (later if case[:2] in seen else first).append(case)
            seen.add(case[:2])
        return first + later

    def turns(self, cases):
        """All cases in turn, then again and again at any visit. Taken with the lock only."""
        while cases:
            yield from cases
            cases = [self.at_any_visit(case) for case in cases]
            self.draw.shuffle(cases)

    def at_any_visit(self, case):
        name, side, workload, _, company = case
        return name, side, workload, self.draw.randint(1, self.visited[(name, side)][workload]), company

    def kill_at(self, page, case):
        name, side, workload, visit, company = case
        others = ("", ", with its keeper", ", with everybody")[company]
        said = f"{name} of the {SIDES[side]}, visit {visit}{others}, in {workload.__name__}"
        is_rescue = name.startswith("rescue.")
        stage = self.stage(workload)
        page.choose(name, visit, side, company != ALONE)
        try:
            first = SERVICE_FIRST if name.startswith(AFTER_A_DEATH) else NOBODY_FIRST
            if name.startswith(ALONE_IN_THE_WORLD):
                first = NODE_FIRST
            stage.run(page, 1 if is_rescue else 1000000, first, company)
        except AssertionError as problem:
            raise AssertionError(f"{said}: {problem}; {stage.work}") from None
        deaths = page.deaths()
        self.count(deaths, (name, side))
        # Nobody is left who could store what nobody has open any more.
        is_alone = first == NODE_FIRST or \
            (side == SERVICE and deaths and (company != ALONE or name.startswith("keeper.")))
        self.judge(stage, said, (side, deaths, is_alone, is_rescue))
        under_cairn.remove(stage.work)

    def count(self, deaths, point):
        with self.lock:
            if self.kills // PROGRESS_KILLS != (self.kills + deaths) // PROGRESS_KILLS:
                print(f"{self.kills + deaths} kills", flush=True)
            self.kills += deaths
            if deaths:
                self.killed.add(point)

    def judge(self, stage, said, death):
        side, deaths, is_alone, is_rescue = death or (None, 0, False, False)
        said = f"{said}: status {stage.status}: {stage.errors[-1200:]}; {stage.work}"
        if is_alone:
            # True when it is 74, or when the node had ended with everything stored.
            never_began = "did not start" in stage.errors or "died before the program started" in stage.errors
            assert stage.status in (0, EXIT_NOT_STORED, -signal.SIGKILL) or never_began, said
            if stage.workload in DURABLE_CHECKS:
                try:
                    DURABLE_CHECKS[stage.workload](stage)
                except AssertionError as problem:
                    raise AssertionError(f"{said}: {problem}") from None
            return
        if is_rescue and stage.status == EXIT_NOT_STORED:
            assert "cairn rescue" in stage.errors, said
            return
        if side == CLIENT and deaths:
            assert stage.status in (0, 137) and "crash worker:" not in stage.errors, said
        else:
            assert stage.status == 0, said
        if stage.workload in RECORDS:
            try:
                check_records(stage)
            except AssertionError as problem:
                raise AssertionError(f"{said}: {problem}") from None
            return
        native, output = self.natives[stage.workload]
        assert stage.out == output, f"{said}: {stage.out!r} is not {output!r}"
        differences = stage.differences(native)
        assert not differences, f"{said}: {differences}"

    def work_off(self, page, turns, until):
        """One of the jobs that kill side by side, each with runs and a page of its own."""
        while True:
            with self.lock:
                is_done = self.kills >= self.options.kills or time.monotonic() >= until
                case = None if is_done else next(turns, None)
            if case is None:
                break
            try:
                self.kill_at(page, case)
            except Exception as problem:  # a job that ends for another reason would be missed by nobody
                with self.lock:
                    self.failures.append(str(problem) or repr(problem))
                    print(f"FAILED: {self.failures[-1]}", flush=True)
        page.close()

    def run(self):
        began = time.monotonic()
        self.learn()
        cases = self.cases()
        work = (self.turns(cases), began + self.options.seconds)
        jobs = [threading.Thread(target=self.work_off, args=(Page(self.work / f"page-{number}"), *work))
                for number in range(self.options.jobs)]
        for job in jobs:
            job.start()
        for job in jobs:
            job.join()
        print(f"{self.kills} kills at {len(self.killed)} of {len({case[:2] for case in cases})} points, "
              f"{time.monotonic() - began:.0f} s")
        return self.failures + self.unvisited()

    def unvisited(self):
        if self.options.only:
            return []
        visited = {name for name, _ in self.visited}
        missing = [name for name in listed_points() if name not in visited]
        if missing:
            print("visited by no workload:", ", ".join(missing))
        return [f"no workload comes by {name}" for name in missing if not name.startswith(RARE)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--worker", type=Path, default=under_cairn.BUILD / "tests/cairn_crash_worker")
    parser.add_argument("--kills", type=int, default=240)
    parser.add_argument("--seconds", type=float, default=110)
    parser.add_argument("--jobs", type=int, default=1, help="runs side by side")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--only", help="points whose names begin so")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    if not under_cairn.have_cairn():
        return under_cairn.SKIPPED
    if options.list:
        print("\n".join(listed_points()))
        return 0
    if not listed_points():
        print("skipped: built without crash points")
        return under_cairn.SKIPPED
    print(f"seed {options.seed}", flush=True)
    driver = Driver(options)
    failures = driver.run()
    for failure in failures:
        print("FAILED:", failure)
    if failures:
        return 1
    under_cairn.remove(driver.work)
    return 0


if __name__ == "__main__":
    sys.exit(main())
