#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The benchmarks: `./dev bench [NAME...] [--quick] [--json FILE] [--list]`.

Every benchmark is one file of bench/suites/ and prints a table: case, value, target, ok. It
measures ordinary programs (bench/workers/), once natively and once under `cairn run`, in turns; a
ratio is the median over the pairs. Everything made is removed at the end, also after Ctrl-C.
"""
import argparse
import importlib
import json
import pathlib
import signal
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from harness import context, errors, table  # noqa: E402

SUITES = pathlib.Path(__file__).resolve().parent / "suites"

EPILOG = """examples:
  ./dev bench --list
  ./dev bench read_hits overwrite
  ./dev bench --quick              tiny sizes: checks contents, judges no time
  ./dev bench --json rows.json     also writes rows {bench, case, value, target, ok}

environment:
  CAIRN_BENCH_DIR    where buffered and native files lie (default /var/tmp; should be ext4)
  CAIRN_BENCH_PAIRS  repetitions of each pair (default 5)
  CAIRN_BENCH_BUILD  the build directory (default build/release)
  CAIRN_BENCH_BEFORE the build directory of an older commit, for "against_before"
  CAIRN_PAPER_SCALE  sizes of the benchmark "paper" (default 0.5, about 25 minutes; 1 is those of the papers' table)
  CAIRN_PAPER_ROUNDS how often "paper" runs each of its systems (default 1)
  CAIRN_PAPER_ONLY   experiments of "paper", with commas: alternating, repetitive, vpic, hacc
  CAIRN_ARRAYS_ONLY, CAIRN_ARRAYS_STORES
                     works and stores of "arrays", with commas (bench/README.md)
  CAIRN_MODELS_ONLY  programs of "models", with commas: checkpoint, strided, ...; the others are those of the last run
  CAIRN_MODELS_AGAIN 1: "models" predicts anew, and compares with its last runs
  CAIRN_TRACES       traces of real I/O for "replacement" and "traces": *.csv, *.lis, *.trace, *.u32, packed or not
"""


def main() -> int:
    names = sorted(path.stem for path in SUITES.glob("*.py") if path.stem != "__init__")
    parser = argparse.ArgumentParser(prog="./dev bench", epilog=EPILOG,
                                     formatter_class=argparse.RawDescriptionHelpFormatter,
                                     description="Measures Cairn, with the target beside each value.")
    parser.add_argument("name", nargs="*", help="benchmarks to run (default: all)")
    parser.add_argument("--quick", action="store_true", help="tiny sizes; never fails on a time")
    parser.add_argument("--json", metavar="FILE", help="write all rows to FILE")
    parser.add_argument("--list", action="store_true", help="list the benchmarks and end")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.name if name not in names]
    if unknown:
        parser.error(f"no benchmark is named '{unknown[0]}'; there are {', '.join(names)}")
    suites = {name: importlib.import_module(f"suites.{name}") for name in arguments.name or names}
    if arguments.list:
        for name, suite in suites.items():
            print(f"{name:18} {suite.__doc__.splitlines()[0]}")
        return 0
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    if arguments.json:
        # Now, not after an hour of measuring: a place that cannot be written is a mistake of the caller.
        pathlib.Path(arguments.json).parent.mkdir(parents=True, exist_ok=True)
        pathlib.Path(arguments.json).write_text("[]\n")
    return _run(suites, arguments.quick, arguments.json)


def _run(suites: dict, quick: bool, json_file) -> int:
    rows, failed = [], []
    try:
        for name, suite in suites.items():
            try:
                with context.Context(name, quick) as bench:
                    suite.run(bench)
                    rows.extend(table.show(bench))
            except errors.Skip as reason:
                print(f"{name}: skipped: {reason}\n", flush=True)
            except errors.BenchError as error:
                failed.append(name)
                rows.append({"bench": name, "case": "runs to its end", "value": 0, "target": 1,
                             "ok": False})
                print(f"{name}: FAILED: {error}\n", flush=True)
    except KeyboardInterrupt:
        print("bench: interrupted", file=sys.stderr)
        return 130
    finally:
        if json_file:
            pathlib.Path(json_file).write_text(json.dumps(rows, indent=1) + "\n")
    missed = [row for row in rows if not row["ok"]]
    print(f"{len(rows) - len(missed)} of {len(rows)} values reach their targets" if not quick else
          f"{len(rows)} cases ran with the right contents" + (f", {len(failed)} failed" if failed else ""))
    return 1 if missed else 0


def _interrupt(_number, _frame):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
