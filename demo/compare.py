# SPDX-License-Identifier: Apache-2.0
"""Runs each workload of the demo directly and under `cairn run`, over the same directory, compares what
both left there, and prints one table. Called by run.sh, which prepares everything it needs.

The columns:
  program  the wall-clock time of the workload's steps
  I/O      program minus the processor time that the direct run spent outside the kernel: the same
           amount is taken off both, so whatever Cairn adds counts as I/O
  stored   from the start of the command until everything is on the backing store, `sync` of its file
           system included
The dropping of cached pages between steps is not the program's, but counts towards `stored` in both
runs, because write-back goes on meanwhile."""

import argparse
import dataclasses
import hashlib
import json
import os
import pathlib
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time

WORKLOADS = pathlib.Path(__file__).resolve().parent / "workloads"
# After Ctrl-C the programs end first: Cairn stores what it holds.
GRACE_SECONDS = 60


@dataclasses.dataclass
class Run:
    """What one run of one workload took and left."""

    program_seconds: float
    stored_seconds: float
    compute_seconds: float
    digest: str
    files: int
    report: dict | None = None


@dataclasses.dataclass
class Comparison:
    """Both runs of one workload, and the figures of the table."""

    title: str
    direct: Run
    cairn: Run | None

    @property
    def compute_seconds(self):
        return min(self.direct.compute_seconds, 0.99 * self.direct.program_seconds)

    def io_seconds(self, run):
        return max(run.program_seconds - self.compute_seconds, 0.01)

    @property
    def same(self):
        return self.cairn is None or self.direct.digest == self.cairn.digest


class WorkloadFailed(Exception):
    """A run of a workload ended with another status than zero."""


def say(text):
    print(f"demo: {text}", flush=True)


def workload_commands(options):
    """The title and the command line of each workload."""
    shape = {"archive": "linux-small.tar.gz", "steps": 4, "particles": 1 << 18, "rounds": 1}
    if not options.quick:
        shape = {"archive": "linux.tar.gz", "steps": 16, "particles": 1 << 20, "rounds": 3}
    inputs = options.store / "inputs"
    return {
        "source-tree": (
            "source tree (tar, grep, sed, gcc)",
            [WORKLOADS / "source_tree.sh", inputs / shape["archive"]],
        ),
        "checkpoint": (
            "checkpoint + clustering (h5py)",
            [WORKLOADS / "checkpoint.sh", sys.executable, shape["steps"], shape["particles"]],
        ),
        "climate": (
            "climate + shorelines (nco, cdo, Python)",
            [WORKLOADS / "climate.sh", sys.executable, inputs, shape["rounds"]],
        ),
    }


def copy_inputs(options):
    """Puts the real data on the backing store, where both runs read it."""
    destination = options.store / "inputs"
    shutil.rmtree(destination, ignore_errors=True)
    destination.mkdir(parents=True)
    archive = "linux-small.tar.gz" if options.quick else "linux.tar.gz"
    shutil.copy2(options.inputs / archive, destination)
    for name in ("climate", "shoreline"):
        shutil.copytree(options.inputs / name, destination / name)
    sync(options.store)


def sync(directory):
    subprocess.run(["sync", "--file-system", directory], check=True)


class PageDropper:
    """Has the kernel drop its cached pages of the files under a directory whenever a workload asks
    through a pipe; outside the run, so that Cairn is not involved, and without touching any other file
    of the machine."""

    def __init__(self, directory, name):
        self.directory = directory
        self.name = str(name)
        for suffix in (".drop", ".dropped"):
            pathlib.Path(self.name + suffix).unlink(missing_ok=True)
            os.mkfifo(self.name + suffix)
        # Open at both ends: so the thread never sees the end of the file between two requests.
        self.requests = os.fdopen(os.open(self.name + ".drop", os.O_RDWR), "rb", buffering=0)
        self.answers = os.fdopen(os.open(self.name + ".dropped", os.O_RDWR), "wb", buffering=0)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while self.requests.read(len(b"drop\n")):
            self.drop()
            self.answers.write(b"dropped\n")

    def drop(self):
        for directory, _, leaves in os.walk(self.directory):
            for leaf in leaves:
                try:
                    file = os.open(os.path.join(directory, leaf), os.O_RDONLY | os.O_NOFOLLOW)
                except OSError:  # A link, or gone since the directory was read.
                    continue
                os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
                os.close(file)


def digest_tree(root):
    """A digest over names, kinds, modes, sizes and contents; and over the times of files that are older
    than a day, because those came out of an archive and have to survive."""
    recent = time.time() - 86400
    total = hashlib.sha256()
    files = 0
    for directory, names, leaves in os.walk(root):
        names.sort()
        for name in sorted(names + leaves):
            path = os.path.join(directory, name)
            status = os.lstat(path)
            line = [os.path.relpath(path, root), oct(status.st_mode)]
            if stat.S_ISLNK(status.st_mode):
                line.append(os.readlink(path))
            elif stat.S_ISREG(status.st_mode):
                files += 1
                with open(path, "rb") as file:
                    line += [str(status.st_size), hashlib.file_digest(file, "sha256").hexdigest()]
                if status.st_mtime < recent:
                    line.append(str(status.st_mtime_ns))
            total.update("\0".join(line).encode() + b"\n")
    return total.hexdigest(), files


def read_phases(path):
    return sum(float(line.split("\t")[0]) for line in path.read_text().splitlines())


def on_terminate(*_):
    raise KeyboardInterrupt


def wait_for(child):
    """Waits for the child, also after a signal, which is handed to its whole process group as a
    terminal would; returns its status and its processor seconds outside the kernel."""
    interrupted = False
    while True:
        try:
            _, status, usage = os.wait4(child.pid, 0)
            break
        except KeyboardInterrupt:
            interrupted = True
            os.killpg(child.pid, signal.SIGINT)
            signal.alarm(GRACE_SECONDS)
    signal.alarm(0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if interrupted:
        raise KeyboardInterrupt
    return child.returncode, usage.ru_utime


def run_once(options, command, prefix, name):
    """Runs a workload in a fresh directory on the backing store until all it wrote is stored."""
    work = options.store / "work"
    phases = options.scratch / f"{name}.phases"
    phases.write_text("")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    sync(options.store)
    environment = dict(os.environ, DEMO_PHASES=str(phases), LC_ALL="C.UTF-8")
    environment["DEMO_PAGES"] = options.pages.name
    options.pages.drop()

    started = time.monotonic()
    child = subprocess.Popen(
        [str(part) for part in prefix + command],
        cwd=work,
        env=environment,
        stdin=subprocess.DEVNULL,
        process_group=0,
    )
    status, compute_seconds = wait_for(child)
    sync(options.store)
    stored_seconds = time.monotonic() - started
    if status != 0:
        raise WorkloadFailed(f"the run {name} ended with status {status}")

    digest, files = digest_tree(work)
    shutil.rmtree(work)
    return Run(read_phases(phases), stored_seconds, compute_seconds, digest, files)


def compare(options, name, title, command):
    say(f"{title}: direct")
    direct = run_once(options, command, [], f"{name}-direct")
    say(f"          {direct.stored_seconds:.2f} s until all {direct.files} files are stored")
    if options.cairn is None:
        return Comparison(title, direct, None)
    say(f"{title}: under cairn run")
    report_file = options.scratch / f"{name}-report.json"
    report_file.unlink(missing_ok=True)
    prefix = [options.cairn, "run", "--buffer", options.store, "--report-json", report_file, "--"]
    cairn = run_once(options, command, prefix, f"{name}-cairn")
    report = json.loads(report_file.read_text())
    cairn.report = report.get("report", report)
    verdict = "the same as direct" if direct.digest == cairn.digest else "DIFFERENT from direct"
    say(f"          {cairn.stored_seconds:.2f} s until all {cairn.files} files are stored; {verdict}")
    return Comparison(title, direct, cairn)


def hits(report):
    """Bytes read, as shares per tier and from the backing store."""
    shares = dict(report.get("hit_bytes", {}))
    shares["store"] = report.get("miss_bytes", 0)
    total = sum(shares.values()) or 1
    return "  ".join(f"{tier} {100 * size / total:.0f}%" for tier, size in shares.items())


def table_rows(comparison):
    direct, cairn = comparison.direct, comparison.cairn
    row = [comparison.title]
    row += [f"{value:.2f} s" for value in (comparison.io_seconds(direct), direct.stored_seconds)]
    if cairn is None:
        return row
    row += [f"{value:.2f} s" for value in (comparison.io_seconds(cairn), cairn.stored_seconds)]
    row.append(f"{comparison.io_seconds(direct) / comparison.io_seconds(cairn):.1f}x")
    row.append(f"{direct.stored_seconds / cairn.stored_seconds:.1f}x")
    row += [hits(cairn.report), "same" if comparison.same else "DIFFERENT"]
    return row


def print_table(comparisons, options):
    heading = ["", "direct: I/O", "stored", "Cairn: I/O", "stored", "speed-up: I/O", "stored"]
    heading += ["bytes read from", "contents"]
    rows = [table_rows(comparison) for comparison in comparisons]
    rows.insert(0, heading[: len(rows[0])])
    widths = [max(map(len, column)) for column in zip(*rows)]
    print()
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:7], widths[1:7])]
        cells += [cell.ljust(width) for cell, width in zip(row[7:], widths[7:])]
        print("  ".join(cells).rstrip())
    print()
    print_legend(comparisons, options)


def print_legend(comparisons, options):
    print(f"Backing store: {options.store_description}.")
    print("The kernel's cached pages of its files were dropped before every step that reads, in both runs.")
    print("I/O: the program's wall-clock time less its computing time (measured direct, the same for both).")
    print("Stored: from the start until all is on the backing store, sync of its file system included.")
    load, processors = os.getloadavg()[0], os.cpu_count()
    if load > processors:
        print(
            f"The machine was busy (load {load:.0f}, {processors} processors): the times hold waiting for a "
            "processor too."
        )
    for comparison in comparisons:
        if comparison.cairn is None:
            continue
        report = comparison.cairn.report
        print(
            f"Cairn's own count, {comparison.title}: {report.get('io_seconds', 0):.2f} s in I/O calls, "
            f"{report.get('read_bytes', 0) >> 20} MiB read, {report.get('written_bytes', 0) >> 20} MiB "
            f"written, {report.get('flushed_bytes', 0) >> 20} MiB flushed, drained in "
            f"{report.get('drain_seconds', 0):.2f} s"
        )


def as_record(comparison):
    record = {"workload": comparison.title, "same": comparison.same}
    for name in ("direct", "cairn"):
        run = getattr(comparison, name)
        if run is not None:
            record[name] = dataclasses.asdict(run) | {"io_seconds": comparison.io_seconds(run)}
    return record


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", type=pathlib.Path, required=True)
    parser.add_argument("--store-description", required=True)
    parser.add_argument("--inputs", type=pathlib.Path, required=True)
    parser.add_argument("--scratch", type=pathlib.Path, required=True)
    parser.add_argument("--cairn", type=pathlib.Path, help="absent: only the direct halves run")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", action="append", help="a workload's name; may be repeated")
    options = parser.parse_args()

    options.scratch.mkdir(parents=True, exist_ok=True)
    workloads = workload_commands(options)
    for name in options.only or []:
        if name not in workloads:
            parser.error(f"no workload '{name}'; there are {', '.join(workloads)}")
    say(f"copying the inputs to {options.store}")
    copy_inputs(options)
    options.pages = PageDropper(options.store, options.scratch / "pages")
    comparisons, failures = [], []
    for name in options.only or workloads:
        try:
            comparisons.append(compare(options, name, *workloads[name]))
        except WorkloadFailed as failure:
            say(f"{failure}; going on without it")
            failures.append(str(failure))
    if comparisons:
        print_table(comparisons, options)
    result = options.scratch / "result.json"
    result.write_text(json.dumps([as_record(comparison) for comparison in comparisons], indent=2))
    for comparison in comparisons:
        if not comparison.same:
            failures.append(f"{comparison.title}: the contents differ between direct and Cairn")
    if failures:
        sys.exit("\n".join(f"demo: FAILED: {failure}" for failure in failures))


if __name__ == "__main__":
    # A shell starts its background jobs deaf to Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, on_terminate)
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
