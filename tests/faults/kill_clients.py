#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Clients killed with SIGKILL at random instants: nothing that they had written may be lost.

    kill_clients.py --kills 300 [--seed S] [--ram 4M]

Several cairn_fault_worker processes write records into own and shared files; one of them is killed every few
milliseconds and replaced. Every so often, and at the end, a surviving client reads every file: each record
whose write had returned must be there with its checksum (only the one record in flight at the kill may be
half written). After the run the same is read natively from the backing store. The node has to answer, to hold
no client slot of the dead, and to have its memory back once the files are removed. From a quarter of the kills
on its service has no more threads and a short log; where the kills are many, it grows by less than 1 MiB and keeps
no descriptor.
"""

import argparse
import json
import os
import random
import signal
import struct
import subprocess
import sys
import time
import zlib
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import under_cairn  # noqa: E402

MAGIC, RECORD, LOG_RECORD, SLOTS, WORKERS_MAX = 0xCA1712EC, 3000, 200, 40, 8
HEADER = struct.Struct("<IIIIQII")
NO_CHECKSUM = bytes(4)
ANNOUNCED = struct.Struct("<IIQ")
OWN, SHARED, LOG, STREAM = range(4)
INTENT = 1 << 63
WORKERS = 3
GROWTH_KIB_MAX, DESCRIPTORS_MAX, MANY_KILLS = 1024, 4, 1000
THREADS_MAX = 2  # more than when warm: one or two answer a question at that moment
LOG_BYTES_MAX = (4 << 20) + (16 << 10)  # the service cuts its log there (kLogBytesMax), after a line or two
LOG_BYTES_PER_KILL_MAX = 64  # less than a line
APPENDED_BYTES_MAX = 8 << 20


class Ledger:
    """What the workers said: the last acknowledged version of each slot, and what was in flight at a kill."""

    def __init__(self):
        self.slots = {}      # (worker, file, slot) -> version
        self.appended = {}   # (file, worker) -> versions
        self.in_flight = {}  # (worker, file, slot) -> version that may be there, whole or in part
        self.versions = {}   # worker -> last version used

    def take(self, worker, data):
        pending = None
        for file, slot, version in ANNOUNCED.iter_unpack(data[:len(data) - len(data) % ANNOUNCED.size]):
            if version & INTENT:
                pending = (file, slot, version & ~INTENT)
                continue
            pending = None
            self.in_flight.pop((worker, file, slot), None)
            if file in (LOG, STREAM):
                self.appended.setdefault(f"{file},{worker}", []).append(version)
            else:
                self.slots[(worker, file, slot)] = version
            self.versions[worker] = version
        if pending:
            file, slot, version = pending
            self.in_flight[(worker, file, slot)] = version
            self.versions[worker] = version

    def save(self, path):
        data = {"slots": [[*k, v] for k, v in self.slots.items()], "appended": self.appended,
                "in_flight": [[*k, v] for k, v in self.in_flight.items()]}
        Path(path).write_text(json.dumps(data))

    @classmethod
    def load(cls, path):
        data, ledger = json.loads(Path(path).read_text()), cls()
        ledger.slots = {tuple(x[:3]): x[3] for x in data["slots"]}
        ledger.in_flight = {tuple(x[:3]): x[3] for x in data["in_flight"]}
        ledger.appended = data["appended"]
        return ledger


def parse(record):
    """The header of a valid record, or None."""
    if len(record) < HEADER.size:
        return None
    magic, worker, file, slot, version, size, checksum = HEADER.unpack_from(record)
    if magic != MAGIC or not HEADER.size <= size <= len(record):
        return None
    # As if the checksum in it were zero.
    before = zlib.crc32(NO_CHECKSUM, zlib.crc32(record[:HEADER.size - 4]))
    return (worker, file, slot, version) if zlib.crc32(record[HEADER.size:size], before) == checksum else None


def check_slots(directory, ledger):
    problems, contents = [], {}
    for (worker, file, slot), version in sorted(ledger.slots.items()):
        name = "shared" if file == SHARED else f"own{worker}"
        if name not in contents:
            contents[name] = (directory / name).read_bytes()
        place = slot * WORKERS_MAX + worker if file == SHARED else slot
        found = parse(contents[name][place * RECORD:(place + 1) * RECORD])
        torn = ledger.in_flight.get((worker, file, slot))
        if found == (worker, file, slot, version) or (torn and (found is None or found[3] == torn)):
            continue
        problems.append(f"{name}: slot {slot} of worker {worker} should hold version {version}, has {found}")
    return problems


def check_appended(directory, ledger):
    problems = []
    for key, versions in sorted(ledger.appended.items()):
        file, worker = map(int, key.split(","))
        name = "log" if file == LOG else f"stream{worker}"
        data, found, at = (directory / name).read_bytes(), {}, 0
        # A record half written by a killed client may stand between whole ones.
        magic = struct.pack("<I", MAGIC)
        while (at := data.find(magic, at)) >= 0:
            header = parse(data[at:at + LOG_RECORD])
            if header and header[0] == worker:
                found[header[3]] = found.get(header[3], 0) + 1
            at += LOG_RECORD if header else 1
        lost = [v for v in versions if v not in found]
        twice = [v for v, count in found.items() if count > 1]
        if lost:
            problems.append(f"{name}: {len(lost)} of {len(versions)} records of worker {worker} lost, e.g. {lost[:5]}")
        if twice:
            problems.append(f"{name}: records of worker {worker} twice: {twice[:5]}")
    return problems


def check_files(directory, ledger):
    return check_slots(directory, ledger) + check_appended(directory, ledger)


class Herd:
    def __init__(self, directory, seed):
        self.directory, self.random, self.ledger = directory, random.Random(seed), Ledger()
        self.program = under_cairn.BUILD / "tests/cairn_fault_worker"
        self.running = {}
        self.appended = 0  # records that were cut away

    def start(self, worker):
        first = self.ledger.versions.get(worker, 0) + 1
        log = open(self.directory.parent / f"acknowledged{worker}", "w+b")
        process = subprocess.Popen([self.program, self.directory, str(worker), str(first),
                                    str(self.random.randrange(1, 1 << 30))], stdout=log)
        self.running[worker] = (process, log)

    def cut_long_files(self):
        """So that a long test is not about ever longer files, of which more is known. Requires: nobody runs."""
        files = [self.directory / "log", *self.directory.glob("stream*")]
        if sum(file.stat().st_size for file in files if file.exists()) < APPENDED_BYTES_MAX:
            return
        for file in files:
            if file.exists():
                os.truncate(file, 0)
        self.appended += sum(len(versions) for versions in self.ledger.appended.values())
        self.ledger.appended.clear()

    def kill(self, worker):
        process, log = self.running.pop(worker)
        if process.poll() is not None:
            raise RuntimeError(f"worker {worker} ended by itself with status {process.returncode}")
        process.send_signal(signal.SIGKILL)
        process.wait()
        log.seek(0)
        self.ledger.take(worker, log.read())
        log.close()


def read_elsewhere(directory, herd, ledger_path):
    """A fresh client reads everything; it must not hang."""
    herd.ledger.save(ledger_path)
    result = subprocess.run([sys.executable, __file__, "--read", directory, "--ledger", ledger_path],
                            capture_output=True, text=True, timeout=600)
    if result.returncode == 0:
        return []
    return result.stdout.splitlines() or [f"the reader failed: {result.stderr[-800:]}"]


def node_status():
    process = subprocess.Popen([under_cairn.CAIRN, "status", "--json"], stdout=subprocess.PIPE)
    output, _ = process.communicate(timeout=20)
    if process.returncode:
        raise RuntimeError(f"cairn status fails with {process.returncode}")
    status = json.loads(output)
    status = status.get("status", status)
    # The command itself was a client while it asked.
    status["clients"] = [c for c in status["clients"] if c["pid"] != process.pid]
    return status


def ram_used(status):
    return sum(tier["used_bytes"] for tier in status["tiers"] if tier["kind"] == "ram")


def remove_and_leave(directory, used_before):
    """Removing the files must give the memory back: looked at by a process that is no client.

    A death between two steps may leave an open of a file counted; that is corrected when nobody is attached.
    """
    for path in directory.iterdir():
        path.unlink()
    sys.stdout.flush()
    os.execve(sys.executable, [sys.executable, __file__, "--settle", str(used_before)],
              {**os.environ, "CAIRN_BYPASS": "1"})


def settled(used_before):
    """Nobody may be left, and the memory must be back.

    The node looks for it while nobody is attached, and each question of ours is a client for a moment.
    """
    deadline = time.monotonic() + 90
    while True:
        status = node_status()
        # This process had a slot before it executed what it is now.
        dead = [c["pid"] for c in status["clients"]
                if c["pid"] == os.getpid() or not Path(f"/proc/{c['pid']}").exists()]
        leaked = ram_used(status) - used_before
        if not dead and leaked < 512 << 10:
            return 0
        if time.monotonic() > deadline:
            break
        time.sleep(0.2 if time.monotonic() < deadline - 80 else 2)
    if dead:
        held = [c for c in status["clients"] if c["pid"] in dead]
        print(f"  slots of dead clients are still held: {held}")
    if leaked >= 512 << 10:
        print(f"  {leaked} bytes of the RAM tier did not come back: {json.dumps(status)[:4000]}")
    return 1


class ServiceSize:
    """What the service holds with no client but this one: its own memory in KiB, threads, log, and descriptors."""

    def __init__(self):
        status = node_status()
        process = self.process = status["service_pid"]
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
        of = {name: rest.split()[0] for name, rest in (line.split(":", 1) for line in lines) if rest.split()}
        self.kib, self.threads = int(of["RssAnon"]), int(of["Threads"])
        self.log = Path(status["directory"]) / "node.log"
        self.log_bytes = self.log.stat().st_size
        self.descriptors = min(self.count_descriptors(process) for _ in range(20))

    @staticmethod
    def count_descriptors(process):
        """What those that were just killed had, it lets go of in a moment."""
        time.sleep(0.1)
        return len(list(Path(f"/proc/{process}/fd").iterdir()))

    def __str__(self):
        return f"{self.kib} KiB, {self.descriptors} descriptors, {self.threads} threads, {self.log_bytes} bytes of log"

    def excess_since(self, before, kills):
        if self.process != before.process:
            yield f"the service has died, and another one follows: {self.log.read_text(errors='replace')[-1500:]}"
        if self.threads - before.threads > THREADS_MAX:
            yield f"the service had {before.threads} threads, and has {self.threads}"
        if self.log_bytes > LOG_BYTES_MAX:
            yield f"node.log has {self.log_bytes} bytes"
        if self.log_bytes - before.log_bytes > kills * LOG_BYTES_PER_KILL_MAX:
            yield f"node.log has grown from {before.log_bytes} to {self.log_bytes} bytes in {kills} kills"

    def growth_since(self, before):
        if self.kib - before.kib >= GROWTH_KIB_MAX:
            yield f"the service has grown from {before.kib} to {self.kib} KiB"
        if self.descriptors - before.descriptors > DESCRIPTORS_MAX:
            yield f"the service had {before.descriptors} descriptors, and has {self.descriptors}"


def inner(options):
    """Inside the run: kill, restart, read."""
    directory, ledger_path = Path(options.inner), options.ledger
    herd, problems = Herd(directory, options.seed), []
    used_before = ram_used(node_status()) if not options.native else 0
    warm = None
    for worker in range(WORKERS):
        herd.start(worker)
    for kill in range(options.kills):
        time.sleep(herd.random.choice((0.001, 0.003, 0.01, 0.02, 0.04)))
        worker = herd.random.randrange(WORKERS)
        herd.kill(worker)
        if kill % 40 == 39:
            for other in list(herd.running):
                herd.kill(other)
            problems = read_elsewhere(directory, herd, ledger_path)
            if problems:
                break
            herd.cut_long_files()
            if warm is None and kill >= options.kills // 4 and not options.native:
                warm = ServiceSize()
        for missing in set(range(WORKERS)) - set(herd.running):
            herd.start(missing)
    for worker in list(herd.running):
        herd.kill(worker)
    problems = problems or read_elsewhere(directory, herd, ledger_path)
    written = herd.appended + sum(len(v) for v in herd.ledger.appended.values())
    print(f"{options.kills} kills, {max(herd.ledger.versions.values())} records of one worker, {written} appended")
    if warm is not None:
        size = ServiceSize()
        print(f"the service when warm: {warm}; at the end: {size}")
        problems += size.excess_since(warm, options.kills)
        if options.kills >= MANY_KILLS:
            problems += size.growth_since(warm)
    for problem in problems:
        print("  " + problem)
    if problems:
        return 1
    if not options.leave and not options.native:  # else the outer part judges what is stored
        remove_and_leave(directory, used_before)
    return 0


def run_part(options, work, leave):
    """One run of the inner part; `leave` keeps the files so that the stored state can be judged."""
    directory, ledger = work / ("stored" if leave else "removed"), work / "ledger"
    directory.mkdir(exist_ok=True)
    command = [sys.executable, __file__, "--inner", directory, "--ledger", ledger, "--kills", options.kills,
               "--seed", options.seed + leave]
    command += ["--leave"] * leave + ["--native"] * options.native
    if not options.native:
        command = under_cairn.cairn_command(command, directory, options.ram)
    outcome = under_cairn.execute(command, work, options.timeout, dict(os.environ))
    print(outcome.output, end="")
    if outcome.status != 0:
        print(f"  {outcome} {outcome.errors[-1500:]}")
        return False
    if leave:
        problems = check_files(directory, Ledger.load(ledger))
        for problem in problems:
            print(f"  stored: {problem}")
        return not problems
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ram", default="4M")
    parser.add_argument("--timeout", type=float, default=600)
    parser.add_argument("--native", action="store_true", help="test the test, without Cairn")
    for hidden in ("--inner", "--ledger", "--read", "--settle"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    parser.add_argument("--leave", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read:
        problems = check_files(Path(options.read), Ledger.load(options.ledger))
        print("\n".join(problems))
        return 1 if problems else 0
    if options.settle:
        return settled(int(options.settle))
    if options.inner:
        return inner(options)
    if not options.native and not under_cairn.have_cairn():
        print(f"skipped: {under_cairn.CAIRN} is not built")
        return under_cairn.SKIPPED
    work = under_cairn.work_directory("faults-kill")
    fine = run_part(options, work, leave=1) and run_part(options, work, leave=0)
    print("passed" if fine else f"FAILED (seed {options.seed}), kept: {work}")
    if fine:
        under_cairn.remove(work)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
