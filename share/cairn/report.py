#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the charts of a run's report, as one PNG each: `cairn report --png` starts it.

Usage: report.py DIRECTORY < LINES

LINES has one JSON object a line for each chart, as cli/report/run_charts.h writes them: id, title, unit, stacked,
seconds, program_end (negative: not marked) and lines (name, colour, values); of the heat map id, title, file_bytes
and cells. DIRECTORY/ID.png is the picture.
"""

import json
import os
import sys

sys.dont_write_bytecode = True  # the folder may be anybody's

import picture  # noqa: E402

# Those of the page, in the light.
COLOURS = ("#0072b2", "#56b4e9", "#009e73", "#d55e00", "#cc79a7", "#e69f00", "#7a6fbe", "#6e7781")
SCALES = {"bytes/s": (1 << 20, "MiB/s"), "bytes": (1 << 20, "MiB"), "percent": (1, "%"), "1/s": (1, "blocks/s")}


def read_charts(data):
    charts = []
    for number, text in enumerate(data.decode("utf-8", "replace").split("\n"), 1):
        if not text.strip():
            continue
        try:
            chart = json.loads(text)
            name = chart["id"]
            if not (isinstance(name, str) and name.isalnum()):
                raise ValueError(f"the id {name!r}")
            if "cells" not in chart:
                lengths = {len(chart["seconds"]), *(len(line["values"]) for line in chart["lines"])}
                if len(lengths) != 1 or chart["unit"] not in SCALES:
                    raise ValueError("lists of unequal length, or an unknown unit")
        except (ValueError, TypeError, KeyError) as error:
            raise picture.BadInput(f"line {number}: no chart: {error}") from None
        charts.append(chart)
    if not charts:
        raise picture.BadInput("no chart came in")
    return charts


def plain(text):
    return str(text).replace("$", r"\$")  # "$" would begin a formula


def draw_heat(axes, chart):
    cells = [float("nan") if cell is None else cell for cell in chart["cells"]]
    shown = axes.imshow([cells], aspect="auto", interpolation="nearest", cmap="inferno",
                        extent=(0, chart["file_bytes"] / (1 << 20), 0, 1))
    axes.set_yticks([])
    axes.set_xlabel("offset (MiB)")
    axes.figure.colorbar(shown, ax=axes, label="log2 of the score")


def draw_lines(axes, chart):
    """A rate holds since the sample before, so it is drawn as steps, as on the page."""
    scale, unit = SCALES[chart["unit"]]
    seconds = chart["seconds"]
    steps = "pre" if chart["unit"] != "bytes" else None
    values = [[value / scale for value in line["values"]] for line in chart["lines"]]
    colours = [COLOURS[line["colour"] % len(COLOURS)] for line in chart["lines"]]
    names = [plain(line["name"]) for line in chart["lines"]]
    if chart["stacked"]:
        axes.stackplot(seconds, values, labels=names, colors=colours, step=steps, linewidth=0)
    else:
        for name, line, colour in zip(names, values, colours):
            axes.plot(seconds, line, label=name, color=colour, drawstyle="steps-pre" if steps else "default")
    if 0 <= chart["program_end"] < seconds[-1]:
        axes.axvline(chart["program_end"], color="grey", linestyle="--", linewidth=1, label="the program's end")
    axes.set_xlim(0, seconds[-1])
    axes.set_ylim(0, 105 if chart["unit"] == "percent" else None)
    axes.set_xlabel("seconds")
    axes.set_ylabel(unit)
    axes.legend(fontsize=8)


def draw(charts, directory):
    """Writes the pictures. Raises ImportError where matplotlib is missing."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot

    for chart in charts:
        is_heat = "cells" in chart
        figure, axes = pyplot.subplots(figsize=(7, 1.6 if is_heat else 3), layout="constrained")
        (draw_heat if is_heat else draw_lines)(axes, chart)
        axes.set_title(plain(chart["title"]), fontsize=9)
        figure.savefig(os.path.join(directory, chart["id"] + ".png"), dpi=150, format="png")
        pyplot.close(figure)


if __name__ == "__main__":
    sys.exit(picture.main("report", __doc__, lambda data, directory: draw(read_charts(data), directory)))
