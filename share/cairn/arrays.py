#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the chunks of a dataset and which of them are cached, as a PNG: `cairn arrays FILE --png` starts it.

Usage: arrays.py OUTPUT.png < DATASET

DATASET is one JSON object, as `cairn arrays --json` prints it: grid (chunks in each dimension), chunk, and cached, a
list of pairs of a chunk's number in row-major order and the name of its tier. The last dimension goes from left to
right, the others, the last of them fastest, from top to bottom.
"""

import json
import sys

sys.dont_write_bytecode = True  # the folder may be anybody's

import picture  # noqa: E402

CHUNKS_MAX = 1 << 16
COLOURS = ("tab:blue", "tab:orange", "tab:green", "tab:purple", "tab:brown", "tab:pink")
LINES_MAX = 128  # more chunks in a dimension are drawn without lines between them


def whole_number(value, what):
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise picture.BadInput(f"{what} is no number of chunks")
    return value


def read_dataset(data):
    """(the object, rows, columns, [(row, column, tier)]) of the text."""
    try:
        dataset = json.loads(data.decode("utf-8", "replace"))
    except ValueError as error:
        raise picture.BadInput(f"not JSON: {error}") from None
    if not isinstance(dataset, dict):
        raise picture.BadInput("not an object")
    grid = dataset.get("grid")
    if not isinstance(grid, list) or not grid:
        raise picture.BadInput("'grid' is no list of numbers")
    rows, columns = 1, whole_number(grid[-1], "'grid'")
    for count in grid[:-1]:
        rows *= whole_number(count, "'grid'")
    if columns == 0 or rows == 0:
        raise picture.BadInput("'grid' has no chunks")
    if not isinstance(dataset.get("cached"), list):
        raise picture.BadInput("'cached' is no list")
    cells = []
    for item in dataset["cached"]:
        if not isinstance(item, list) or len(item) != 2:
            raise picture.BadInput("'cached' has something that is no pair")
        number = whole_number(item[0], "'cached'")
        if number >= rows * columns:
            raise picture.BadInput(f"chunk {number} is beyond the grid")
        cells.append((number // columns, number % columns, str(item[1])))
    return dataset, min(rows, -(-CHUNKS_MAX // columns)), columns, cells


def draw(dataset, rows, columns, cells, output):
    """Writes the picture. Raises ImportError where matplotlib is missing."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import colors, patches, pyplot

    tiers = sorted({tier for _, _, tier in cells})
    step = max(1, -(-columns // CHUNKS_MAX))
    values = [[0] * -(-columns // step) for _ in range(rows)]
    for row, column, tier in cells:
        if row < rows:
            values[row][column // step] = 1 + tiers.index(tier)
    palette = ["lightgrey"] + [COLOURS[at % len(COLOURS)] for at in range(len(tiers))]
    figure, axes = pyplot.subplots(figsize=(9, 7), layout="constrained")
    axes.imshow(values, aspect="auto", interpolation="nearest", cmap=colors.ListedColormap(palette), vmin=-0.5,
                vmax=len(palette) - 0.5, extent=(0, columns, rows, 0))
    if columns <= LINES_MAX:
        axes.vlines(range(1, columns), 0, rows, color="white", linewidth=0.5)
    if rows <= LINES_MAX:
        axes.hlines(range(1, rows), 0, columns, color="white", linewidth=0.5)
    name = str(dataset.get("name", "")).replace("$", r"\$")
    sizes = " x ".join(str(size) for size in dataset.get("chunk", []))
    axes.set_title(f"{name}\n{len(cells)} chunks of {sizes} cells are cached", fontsize=10)
    axes.set_xlabel("chunks in the last dimension")
    axes.set_ylabel("chunks in the others")
    axes.legend(handles=[patches.Patch(color=colour, label=label) for colour, label in
                         zip(palette, ["in the file alone", *tiers])], loc="upper left",
                bbox_to_anchor=(1.01, 1), frameon=False)
    figure.savefig(output, dpi=120, format="png")
    pyplot.close(figure)


if __name__ == "__main__":
    sys.exit(picture.main("arrays", __doc__, lambda data, output: draw(*read_dataset(data), output)))
