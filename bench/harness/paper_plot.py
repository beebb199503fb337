#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws one figure for each experiment of bench/suites/paper.py: paper_plot.py FIGURES.JSON DIRECTORY.

Left what the program saw, right until everything was stored; one group of bars for each case, one bar for each system.
Runs in build/venv, which has matplotlib.
"""
import json
import math
import pathlib
import sys

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402

VISIBLE = ("io_s", "I/O time as the program saw it")
# Where the paper's figure is of reads alone: the data set is written once, whatever follows.
VISIBLE_OF = {"repetitive": ("read_s", "reading as the program saw it")}
STORED = ("stored_s", "until everything is stored")


def draw(experiment: str, records: list, file: pathlib.Path) -> None:
    cases = list(dict.fromkeys((record["case"], record["store"]) for record in records))
    titles = list(dict.fromkeys(record["title"] for record in records))
    quantities = (VISIBLE_OF.get(experiment, VISIBLE), STORED)
    figure, panels = pyplot.subplots(1, len(quantities), figsize=(4 + 2.2 * len(cases), 4.2))
    width = 0.8 / len(titles)
    for panel, (quantity, label) in zip(panels, quantities):
        for index, title in enumerate(titles):
            values = {(record["case"], record["store"]): record[quantity]
                      for record in records if record["title"] == title}
            places = [place + (index - (len(titles) - 1) / 2) * width
                      for place, case in enumerate(cases) if case in values]
            panel.bar(places, [values[case] for case in cases if case in values], width, label=title)
        # Logarithmic: the systems are a hundred times apart.
        panel.set_yscale("log")
        # From a power of ten: bars that begin just below the least value would show ratios that are none.
        least = min(max(record[quantity], 1e-6) for record in records)
        panel.set_ylim(bottom=10 ** math.floor(math.log10(least)))
        panel.set_ylabel("seconds")
        panel.set_title(label, fontsize=10)
        panel.set_xticks(range(len(cases)), [f"{case}\n{store}" for case, store in cases], fontsize=8)
        panel.grid(axis="y", alpha=0.3)
    figure.suptitle(experiment)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="lower center", ncols=3, fontsize=8)
    figure.tight_layout(rect=(0, 0.1, 1, 1))
    figure.savefig(file, dpi=130)
    pyplot.close(figure)


def main() -> None:
    records = json.loads(pathlib.Path(sys.argv[1]).read_text())
    for experiment in dict.fromkeys(record["experiment"] for record in records):
        chosen = [record for record in records if record["experiment"] == experiment]
        draw(experiment, chosen, pathlib.Path(sys.argv[2]) / f"{experiment}.png")


if __name__ == "__main__":
    main()
