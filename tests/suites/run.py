#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Independent file system suites, natively and under Cairn; only differences count.

    run.py fsx | pjdfstest | stress_ng        one suite
    run.py --install                          builds fsx and pjdfstest from crates.io into build/tools

Differences by design stand in expected_differences.txt, one test per line with its reason.
"""

import argparse
import os
import re
import shutil
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import under_cairn  # noqa: E402

CRATES = {"fsx": "0.3.2", "pjdfstest": "0.2.2"}

# Every operation that fsx knows, with sizes around pages and blocks.
FSX_CONFIG = """flen = 1500000
[opsize]
min = 1
max = 150000
{align}
[weights]
close_open = 3
invalidate = 1
mapread = 8
mapwrite = 8
read = 20
write = 20
truncate = 5
fsync = 0.3
fdatasync = 0.3
posix_fallocate = {fallocate}
punch_hole = 5
sendfile = 8
posix_fadvise = 2
copy_file_range = 8
"""

PJD_CONFIG = """[features]
posix_fallocate = {}
utimensat = {}
nfsv4_acls = {}
chflags = {}
[settings]
naptime = 0.02
allow_remount = false
[dummy_auth]
entries = [["nobody", "nogroup"], ["daemon", "daemon"]]
"""

# Watching, attributes and pseudo file systems are not Cairn's; the rest of the class is.
STRESS_EXCLUDED = "xattr,fanotify,inotify,chroot,binderfs,ioprio,verity,procfs,sysfs,dev,io-uring"


def tool(name):
    """The suite's program, built from crates.io when cargo is here; None when it cannot be had."""
    path = under_cairn.TOOLS / "bin" / name
    if path.exists():
        return path
    cargo = shutil.which("cargo") or shutil.which("cargo", path=os.path.expanduser("~/.cargo/bin"))
    if cargo:
        command = [cargo, "install", name, "--version", CRATES[name], "--locked", "--root", under_cairn.TOOLS]
        under_cairn.execute(command, under_cairn.SOURCE, 900, dict(os.environ))
    return path if path.exists() else None


def run_both(work, command, timeout, ram="16M", options=()):
    """The same command in a native and in a managed directory; yields outcomes by kind. "DIR" in a word of the
    command stands for the directory."""
    outcomes = {}
    for kind in ("native", "cairn"):
        directory = work / kind
        directory.mkdir()
        directory.chmod(0o755)
        words = [str(word).replace("DIR", str(directory)) for word in command]
        if kind == "cairn":
            words = under_cairn.cairn_command(words, directory, ram=ram, options=options)
        outcomes[kind] = under_cairn.execute(words, work, timeout)
    return outcomes["native"], outcomes["cairn"]


def run_fsx(work, arguments):
    program = tool("fsx")
    if not program:
        return None
    problems = []
    for seed in range(arguments.seed, arguments.seed + arguments.seeds):
        home = work / f"seed{seed}"
        home.mkdir()
        config = home / "fsx.toml"
        # fsx itself asks for empty allocations when it aligns.
        aligned = seed % 4 == 0
        config.write_text(FSX_CONFIG.format(align="align = 4096" if aligned else "",
                                            fallocate=0 if aligned else 3))
        command = [program, "-q", "-N", arguments.ops, "-S", seed, "-P", home, "-f", config, "DIR/f"]
        native, cairn = run_both(home, command, 300, ram="2M")
        if native.status != 0:
            problems.append(f"fsx seed {seed} fails natively: {native.errors[-300:]}")
        elif cairn.status != 0 or cairn.timed_out:
            problems.append(f"fsx seed {seed}: {cairn}: {(cairn.output + cairn.errors)[-1500:]}")
        elif (home / "native/f").read_bytes() != (home / "cairn/f").read_bytes():
            problems.append(f"fsx seed {seed}: what is stored differs")
    return problems


def pjd_verdicts(outcome):
    return dict(re.findall(r"^(\S+::\S+(?: \[[^\]]*\])?)[ .]*\b(ok|success|FAILED|failed|skipped|PASS|FAIL)\b",
                           outcome.output, re.MULTILINE | re.IGNORECASE))


def run_pjdfstest(work, arguments):
    program = tool("pjdfstest")
    if not program or os.geteuid() != 0:
        return None
    # The tests change to other users, who have to reach the directory.
    for folder in (work, work.parent):
        folder.chmod(0o755)
    config = work / "pjdfstest.toml"
    config.write_text(PJD_CONFIG)
    native, cairn = run_both(work, [program, "-c", config, "-p", "DIR"], 300)
    before, after = pjd_verdicts(native), pjd_verdicts(cairn)
    if len(before) < 100:
        return [f"only {len(before)} verdicts natively: {(native.output + native.errors)[-500:]}"]
    good = ("ok", "success", "pass")
    return [f"{name}: natively {before[name]}, under Cairn {after.get(name, 'missing')}"
            for name in sorted(before) if before[name].lower() in good and after.get(name, "").lower() not in good]


def stress_verdicts(outcome):
    """Stressors that were started, and those that complained."""
    said = outcome.output + outcome.errors
    started = set(re.findall(r"stress-ng: (?:metrc|info): +\[\d+\] ([a-z][\w-]+) +\d+ ", said))
    failed = set(re.findall(r"stress-ng: (?:fail|error): +\[\d+\] (?:stress-ng-)?([a-z][\w-]+):", said))
    return started, failed


def run_stress_ng(work, arguments):
    program = shutil.which("stress-ng")
    if not program:
        return None
    command = [program, "--temp-path", "DIR", "--verify", "--metrics-brief", "--sequential", "1", "--timeout", "1s",
               "--class", "filesystem", "--exclude", STRESS_EXCLUDED]
    native, cairn = run_both(work, command, 400)
    before, after = stress_verdicts(native), stress_verdicts(cairn)
    problems = [f"{name}: fails under Cairn only" for name in sorted(after[1] - before[1])]
    problems += [f"{name}: did not run under Cairn" for name in sorted(before[0] - after[0] - after[1])]
    if cairn.timed_out or (cairn.status != native.status and not problems):
        problems.append(f"stress-ng: natively {native}, under Cairn {cairn}: {cairn.errors[-1000:]}")
    if not before[0]:
        problems.append(f"stress-ng ran nothing natively: {native.errors[-500:]}")
    if problems:
        (work / "log").write_text(cairn.output + cairn.errors)
    return problems


def expected():
    entries = {}
    for line in (HERE / "expected_differences.txt").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            suite, name, reason = line.split(None, 2)
            entries[(suite, name)] = reason
    return entries


SUITES = {"fsx": run_fsx, "pjdfstest": run_pjdfstest, "stress_ng": run_stress_ng}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("suite", nargs="?", choices=sorted(SUITES))
    parser.add_argument("--install", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--ops", type=int, default=4000)
    arguments = parser.parse_args()
    if arguments.install:
        print(" ".join(str(tool(name)) for name in CRATES))
        return 0
    if not arguments.suite or not under_cairn.have_cairn():
        print(f"skipped: {under_cairn.CAIRN} is not built" if arguments.suite else __doc__)
        return under_cairn.SKIPPED
    work = under_cairn.work_directory(f"suite-{arguments.suite}")
    began = time.monotonic()
    problems = SUITES[arguments.suite](work, arguments)
    if problems is None:
        print(f"skipped {arguments.suite}: neither its program nor cargo (and root for pjdfstest) is here")
        under_cairn.remove(work)
        return under_cairn.SKIPPED
    reasons = expected()
    unexplained = []
    for problem in problems:
        reason = reasons.get((arguments.suite, problem.split(": ")[0]))
        print(f"  expected: {problem} ({reason})" if reason else f"  {problem}")
        unexplained += [] if reason else [problem]
    seconds = time.monotonic() - began
    if unexplained:
        print(f"FAILED {arguments.suite} ({seconds:.1f} s): {len(unexplained)} differences, kept: {work}")
        return 1
    print(f"passed {arguments.suite} ({seconds:.1f} s)")
    under_cairn.remove(work)
    return 0


if __name__ == "__main__":
    sys.exit(main())
