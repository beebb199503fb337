#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the fuzz targets (build/fuzz, the preset `fuzz`), two at a time.

    tests/fuzz/run.py [--seconds N] [--jobs N] [--seed N] [TARGET...]   each target for N seconds
    tests/fuzz/run.py --replay FILE TARGET                              one input again, as it was found
    tests/fuzz/run.py --keep TARGET...          a few of the inputs that reach most become a part of corpus/TARGET

First inputs are those of tests/fuzz/corpus/TARGET; what a run finds beside them stays in build/fuzz-inputs/TARGET, and
the next run begins with it. An input that breaks a target is printed, and stays in build/fuzz-findings. Exit status: 0,
1 when something was found, 77 when nothing is built (clang-19 is needed).
"""
import argparse
import concurrent.futures
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent.parent
BUILD = Path(os.environ.get("CAIRN_FUZZ_BUILD", SOURCE / "build" / "fuzz"))
INPUTS = SOURCE / "build" / "fuzz-inputs"
FINDINGS = SOURCE / "build" / "fuzz-findings"
SKIPPED = 77
INPUT_BYTES_MAX = 16384
INPUT_SECONDS_MAX = 25
PRINTED_BYTES_MAX = 400
KEPT_MAX = 40
KEPT_BYTES_MAX = 1024
HASH_LETTERS = 40  # of the names that libFuzzer gives


def targets():
    return sorted(path.name.removesuffix("_fuzz.cc") for path in HERE.glob("*_fuzz.cc"))


def program(target):
    return BUILD / "fuzz" / f"fuzz_{target}"


def environment():
    # The schema reader is found as an installed one is; a leak of a library at exit is no finding.
    return {**os.environ, "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0:allocator_may_return_null=1",
            "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1"}


def fuzz(target, seconds, seed):
    corpus, found = HERE / "corpus" / target, INPUTS / target
    for directory in (found, FINDINGS):
        directory.mkdir(parents=True, exist_ok=True)
    command = [program(target), f"-max_total_time={seconds}", f"-seed={seed}", f"-timeout={INPUT_SECONDS_MAX}",
               f"-max_len={INPUT_BYTES_MAX}", "-rss_limit_mb=3072", "-print_final_stats=1",
               f"-artifact_prefix={FINDINGS}/{target}-", found, *([corpus] if corpus.is_dir() else [])]
    began = time.time()
    try:
        outcome = subprocess.run(command, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE, timeout=seconds + 10 * INPUT_SECONDS_MAX, check=False)
        status, said = outcome.returncode, outcome.stderr.decode(errors="replace")
    except subprocess.TimeoutExpired as late:
        status, said = 1, f"{target} does not end\n" + (late.stderr or b"").decode(errors="replace")
    new = [path for path in FINDINGS.glob(f"{target}-*") if path.stat().st_mtime >= began - 1]
    return status, said, new


def count_in(said, name):
    lines = [line for line in said.splitlines() if line.startswith(f"stat::{name}:")]
    return lines[-1].split()[-1] if lines else "?"


def reach_in(said):
    words = [line.split("cov: ")[1].split()[0] for line in said.splitlines() if "cov: " in line]
    return words[-1] if words else "?"


def report(target, seconds, seed):
    status, said, new = fuzz(target, seconds, seed)
    if status == 0:
        return True, (f"{target}: {count_in(said, 'number_of_executed_units')} inputs, {reach_in(said)} branches, "
                      f"{seconds} s, seed {seed}")
    text = [f"{target}: FAILED (status {status}, seed {seed})"]
    for path in new:
        data = path.read_bytes()
        shown = repr(data[:PRINTED_BYTES_MAX]) + ("..." if len(data) > PRINTED_BYTES_MAX else "")
        text += [f"  input ({len(data)} bytes): {shown}", f"  kept: {path}",
                 f"  again: tests/fuzz/run.py --replay {path} {target}"]
    lines = said.splitlines()
    signs = ("ERROR:", "runtime error:", "check failed", "SUMMARY:", "Assertion")
    first = next((at for at, line in enumerate(lines) if any(sign in line for sign in signs)), max(0, len(lines) - 40))
    return False, "\n".join(text + ["    " + line for line in lines[first:first + 40]])


def replay(target, path):
    return subprocess.run([program(target), path], env=environment(), check=False).returncode


def keep(target):
    """The inputs with names that people have given stay, and a few of all the others join them."""
    corpus, found = HERE / "corpus" / target, INPUTS / target
    fewest = INPUTS / f"{target}.fewest"
    shutil.rmtree(fewest, ignore_errors=True)
    fewest.mkdir(parents=True)
    corpus.mkdir(parents=True, exist_ok=True)
    subprocess.run([program(target), "-merge=1", f"-max_len={KEPT_BYTES_MAX}", fewest, corpus, found],
                   env=environment(), check=True, stderr=subprocess.DEVNULL)
    for path in corpus.iterdir():
        if len(path.name) == HASH_LETTERS:
            path.unlink()
    rest = sorted(fewest.iterdir(), key=lambda path: (path.stat().st_size, path.name))
    step = max(1, -(-len(rest) // KEPT_MAX))
    for path in rest[::step]:
        shutil.copy(path, corpus / path.name)
    print(f"{target}: {len(list(corpus.iterdir()))} of {len(rest)} inputs")


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seconds", type=int, default=60)
    options.add_argument("--jobs", type=int, default=2)
    options.add_argument("--seed", type=int, default=int(time.time()) % 2**31)
    options.add_argument("--replay", metavar="FILE")
    options.add_argument("--keep", action="store_true")
    options.add_argument("target", nargs="*")
    asked = options.parse_args()
    chosen = asked.target or targets()
    for target in chosen:
        if target not in targets():
            options.error(f"there is no target {target}: {', '.join(targets())}")
        if not program(target).exists():
            print(f"skipped: {program(target)} is not built (./dev fuzz builds it, with clang-19)")
            return SKIPPED
    if asked.replay:
        return replay(chosen[0], asked.replay)
    if asked.keep:
        for target in chosen:
            keep(target)
        return 0
    # One after the other finds a free place; a failure is printed at once.
    good = True
    with concurrent.futures.ThreadPoolExecutor(asked.jobs) as pool:
        running = [pool.submit(report, target, asked.seconds, asked.seed) for target in chosen]
        for done in concurrent.futures.as_completed(running):
            is_good, text = done.result()
            print(text, flush=True)
            good = good and is_good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
