# SPDX-License-Identifier: Apache-2.0
"""What `cairn advise` predicts from a trace, beside what was measured, and how far the two lie apart.

A cell is one program under one configuration. Seconds are those inside the program's I/O calls, of its slowest process.
"""
import dataclasses
import json
import math
import statistics

WITHOUT = "none"
# How much faster a configuration has to be before advice prefers it to a cheaper one; as `cairn advise` does.
NEARLY_AS_FAST = 0.02
# Two equal runs lie so far apart: a gain below it is neither a help nor a harm, and a forecast below it says so.
NO_DIFFERENCE = 0.05


@dataclasses.dataclass
class Cell:
    program: str
    configuration: str
    measured: float
    predicted: float = 0
    low: float = 0
    high: float = 0
    parts: dict = dataclasses.field(default_factory=dict)
    drain_measured: float = 0
    drain_predicted: float = 0

    def error(self) -> float:
        return abs(self.predicted - self.measured) / self.measured

    def is_inside(self) -> bool:
        return self.low <= self.measured <= self.high

    def take(self, forecast: dict) -> None:
        self.predicted = forecast["io_seconds"]
        self.low, self.high = forecast["interval"]["low"], forecast["interval"]["high"]
        self.parts = forecast["parts"]
        self.drain_predicted = forecast["drain_seconds"]


def advise(bench, trace, store, settings) -> dict:
    """The answer on a configuration file. Nothing of the measured runs is in the question."""
    words = [bench.cairn, "advise", "--json", "--trace", trace, "--store", store, "--config", settings]
    return json.loads(bench.output(words))


def configured(answer: dict) -> dict:
    """The forecast of the configuration that was asked about."""
    return next(plan for plan in answer["candidates"] if plan["name"] == "as configured")["forecast"]


def rows(cells: list) -> list:
    """Lines for people."""
    lines = [f"{'program':12} {'configuration':14} {'measured':>9} {'predicted':>9}  {'90 % interval':19} {'error':>6}"]
    for cell in cells:
        mark = "" if cell.is_inside() else "  outside"
        parts = ", ".join(f"{name} {seconds:.2f}" for name, seconds in cell.parts.items() if seconds >= 0.005)
        lines.append(f"{cell.program:12} {cell.configuration:14} {cell.measured:7.3f} s {cell.predicted:7.3f} s  "
                     f"{cell.low:7.3f} to {cell.high:7.3f}  {100 * cell.error():4.0f} %{mark}  [{parts}] "
                     f"drain {cell.drain_measured:.2f}, {cell.drain_predicted:.2f}")
    return lines


def percentile(values: list, share: float) -> float:
    """The smallest value that so many do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def judge(bench, cells: list, default: str) -> None:
    """Records the cases of the issue for all cells together."""
    errors = [cell.error() for cell in cells]
    inside = sum(cell.is_inside() for cell in cells) / len(cells)
    bench.at_most("median error", 100 * statistics.median(errors), 12, "%", f"{len(cells)} cells")
    bench.at_most("90th percentile of the error", 100 * percentile(errors, 0.9), 30, "%")
    bench.at_least("measured inside the 90 % interval", 100 * inside, 85, "%")
    bench.at_most("the same, not more than", 100 * inside, 97, "%")
    _judge_signs(bench, cells)
    _judge_choices(bench, cells, default)


def _by_program(cells: list) -> dict:
    found = {}
    for cell in cells:
        found.setdefault(cell.program, {})[cell.configuration] = cell
    return found


def _judge_signs(bench, cells: list) -> None:
    right, clear_wrong, count, wrong = 0, 0, 0, []
    for sides in _by_program(cells).values():
        without = sides[WITHOUT]
        for cell in sides.values():
            if cell is without:
                continue
            truth = 1 - cell.measured / without.measured
            forecast = 1 - cell.predicted / without.predicted
            count += 1
            if (truth > 0) == (forecast > 0) or max(abs(truth), abs(forecast)) < NO_DIFFERENCE:
                right += 1
                continue
            clear_wrong += abs(truth) > 0.1
            wrong.append(f"{cell.program} {cell.configuration} {100 * truth:+.0f} % as {100 * forecast:+.0f} %")
    bench.at_least("right whether it will help", 100 * right / max(count, 1), 95, "%", "; ".join(wrong[:6]))
    bench.at_most("wrong where the truth is beyond 10 %", clear_wrong, 0, "cells")


def choice(sides: dict) -> str:
    """The first, in the order of configurations (cheap ones first), of those that are about as fast as the fastest."""
    best = min(cell.predicted for cell in sides.values())
    margin = NEARLY_AS_FAST * sides[WITHOUT].predicted
    return next(name for name, cell in sides.items() if cell.predicted <= best + margin)


def _judge_choices(bench, cells: list, default: str) -> None:
    close, worst, details = 0, 0.0, []
    programs = _by_program(cells)
    for program, sides in programs.items():
        chosen = sides[choice(sides)]
        best = min(sides.values(), key=lambda cell: cell.measured)
        is_close = chosen.measured <= 1.05 * best.measured
        close += is_close
        worst = max(worst, chosen.measured / sides[default].measured - 1)
        if not is_close:
            details.append(f"{program}: {chosen.configuration} {chosen.measured:.3g} s, not {best.configuration} "
                           f"{best.measured:.3g} s")
    bench.at_least("chosen within 5 % of the best", 100 * close / len(programs), 90, "%", "; ".join(details[:6]))
    bench.at_most("chosen worse than the default by", 100 * worst, 3, "%")
