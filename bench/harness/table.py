# SPDX-License-Identifier: Apache-2.0
"""Prints the cases of one benchmark and turns them into rows for the JSON file."""


def show(bench) -> list:
    print(f"{bench.name}: {bench.purpose}")
    lines = [("case", "value", "target", "ok", "")]
    for case in bench.cases:
        sign = "<=" if case.at_most else ">="
        judged = "yes" if case.ok else "NO"
        lines.append((case.name, f"{_number(case.value)} {case.unit}",
                      f"{sign} {_number(case.target)} {case.unit}",
                      "content" if bench.quick else judged, case.detail))
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    for line in lines:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())
    for note in bench.notes:
        print(f"  ({note})")
    print(flush=True)
    return [{"bench": bench.name, "case": case.name, "value": case.value, "target": case.target,
             "ok": case.ok} for case in bench.cases]


def _number(value: float) -> str:
    if value == int(value) and abs(value) < 1e6:
        return str(int(value))
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"
