# SPDX-License-Identifier: Apache-2.0
"""What bench/suites/paper.py shows: judged ratios, the seconds behind them, a JSON file and plots."""
import json
import subprocess

from . import paper_systems
from .context import REPOSITORY

OUTPUT = REPOSITORY / "build/bench/paper"
PLOT = REPOSITORY / "bench/harness/paper_plot.py"
QUANTITIES = ("io", "write", "read", "program", "stored")
INSTALL_SECONDS = 300


def speed_up(bench, series, name: str, ours: str, theirs: str, target: float, quantity: str = "io",
             noise: float = 0) -> None:
    """Judges how many times faster `ours` is, and shows beside it both systems until everything is stored."""
    if not _both_ran(bench, series, name, ours, theirs):
        return
    detail = (f"{series.median(ours, quantity):.3g} s against {series.median(theirs, quantity):.3g} s; "
              f"until stored {series.median(ours, 'stored'):.3g} s against "
              f"{series.median(theirs, 'stored'):.3g} s")
    bench.at_least(name, series.ratio(theirs, ours, quantity), target, detail=detail, noise=noise)


def not_behind(bench, series, name: str, ours: str, others, most: float, quantity: str = "io") -> None:
    """Judges that `ours` needs at most `most` times what the best of the others needs."""
    best = series.fastest(others, quantity)
    if not best or not _both_ran(bench, series, name, ours, best):
        skipped = [reason for key, reason in series.skipped.items() if key in others]
        if not best and skipped:
            bench.note(f"{name}: skipped: {skipped[0]}")
        return
    bench.at_most(name, series.ratio(ours, best, quantity), most, "x",
                  detail=f"{series.median(ours, quantity):.3g} s against {best} "
                         f"{series.median(best, quantity):.3g} s")


def _both_ran(bench, series, name: str, ours: str, theirs: str) -> bool:
    for key in (ours, theirs):
        if not series.has(key):
            reason = series.skipped.get(key, "it was not run")
            bench.note(f"{name}: skipped: {reason}")
            return False
    return True


def figures(all_series) -> list:
    """One record for each workload and system, for the JSON file and the plots."""
    return [{"experiment": series.workload.experiment, "case": series.workload.case,
             "store": series.workload.store, "bytes": series.workload.data_bytes,
             "device_rate": series.rate, "system": key, "title": paper_systems.find(key).title,
             "rounds": len(outcomes), "through": round(series.median(key, "through"), 4),
             **{f"{quantity}_s": round(series.median(key, quantity), 6) for quantity in QUANTITIES}}
            for series in all_series for key, outcomes in series.outcomes.items() if outcomes]


def show_seconds(records: list) -> None:
    """Every figure as the program saw it (its I/O calls and the whole program) and until all is stored."""
    lines = [("experiment", "case", "store", "system", "I/O", "write", "read", "program", "until stored")]
    for record in records:
        lines.append((record["experiment"], record["case"], record["store"], record["title"],
                      *(f"{record[f'{quantity}_s']:.3f} s" for quantity in QUANTITIES)))
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    for line in lines:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())
    print(flush=True)


def write(bench, records: list) -> None:
    """figures.json and one plot for each figure of the paper, in build/bench/paper/."""
    directory = OUTPUT / "quick" if bench.quick else OUTPUT
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "figures.json").write_text(json.dumps(records, indent=1) + "\n")
    python = interpreter("matplotlib", install=not bench.quick)
    if not python:
        bench.note("no plots: build/venv has no matplotlib (./dev venv matplotlib installs it)")
        return
    bench.output([python, PLOT, directory / "figures.json", directory])
    bench.note(f"figures.json and plots: {directory.relative_to(REPOSITORY)}")


def interpreter(package: str, install: bool) -> str:
    """build/venv's Python if it has the package, installed on demand; else ""."""
    python = REPOSITORY / "build/venv/bin/python"
    if not _has(python, package) and install:
        try:
            subprocess.run([REPOSITORY / "dev", "venv", package], check=False, timeout=INSTALL_SECONDS,
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return ""
    return str(python) if _has(python, package) else ""


def _has(python, package: str) -> bool:
    """Looked for, not imported: that alone would take a second."""
    if not python.exists():
        return False
    probe = f"import importlib.util, sys; sys.exit(importlib.util.find_spec('{package}') is None)"
    return subprocess.run([python, "-c", probe], check=False).returncode == 0
