#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws a heat map as a PNG: `cairn heatmap FILE --png` starts it.

Usage: heatmap.py OUTPUT.png < LINES

LINES is one JSON object for the map (name, file_bytes, segment_bytes, epochs) and then one for each segment that
was accessed (offset, bytes, score_log2), each on a line, as src/policy/heat/heat_text.h writes them.
"""

import json
import math
import sys

sys.dont_write_bytecode = True  # the folder may be anybody's

import picture  # noqa: E402

# Scores below this part of the highest look the same: 2 to the power of -12.
STEPS_SHOWN = 12
COLUMNS_MAX = 4096


def number_of(item, key, line):
    value = item.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise picture.BadInput(f"line {line}: '{key}' is not a number")
    return value


def read_map(data):
    """(the map's object, [(offset, bytes, log2 of the score)]) of the lines."""
    header, segments = None, []
    for line, text in enumerate(data.decode("utf-8", "replace").split("\n"), 1):
        if not text.strip():
            continue
        try:
            item = json.loads(text)
        except ValueError as error:
            raise picture.BadInput(f"line {line}: not JSON: {error}") from None
        if not isinstance(item, dict):
            raise picture.BadInput(f"line {line}: not an object")
        if header is None:
            for key in ("file_bytes", "segment_bytes", "epochs"):
                if number_of(item, key, line) < 0:
                    raise picture.BadInput(f"line {line}: '{key}' is negative")
            header = item
            continue
        offset, size = number_of(item, "offset", line), number_of(item, "bytes", line)
        if offset < 0 or size <= 0:
            raise picture.BadInput(f"line {line}: not a range of a file")
        segments.append((offset, size, number_of(item, "score_log2", line)))
    if header is None:
        raise picture.BadInput("no heat map came in")
    return header, segments


def unit_of(size):
    """The unit for offsets in a file of this size, and its name."""
    for power, name in ((4, "TiB"), (3, "GiB"), (2, "MiB"), (1, "KiB")):
        if size >= 2 * 1024 ** power:
            return 1024 ** power, name
    return 1, "B"


def columns_of(segments, length, count):
    """The highest log2 score in each of `count` columns over the file; NaN where nothing was accessed."""
    columns = [math.nan] * count
    for offset, size, score in segments:
        first = min(int(offset * count / length), count - 1)
        last = min(max(math.ceil((offset + size) * count / length), first + 1), count)
        for column in range(first, last):
            if not columns[column] >= score:
                columns[column] = score
    return columns


def draw(header, segments, output):
    """Writes the picture. Raises ImportError where matplotlib is missing."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot

    length = max([header["file_bytes"], 1] + [offset + size for offset, size, _ in segments])
    segment_bytes = max(header["segment_bytes"], 1)
    count = int(min(max(math.ceil(length / segment_bytes), 1), COLUMNS_MAX))
    unit, unit_name = unit_of(length)
    columns = columns_of(segments, length, count)
    highest = max((score for _, _, score in segments), default=0.0)

    figure, (strip, curve) = pyplot.subplots(
        2, 1, figsize=(12, 4.5), sharex=True, height_ratios=(1, 2.5), layout="constrained")
    extent = (0, length / unit, 0, 1)
    image = strip.imshow([columns], aspect="auto", interpolation="nearest", extent=extent, cmap="inferno",
                         vmin=highest - STEPS_SHOWN, vmax=highest)
    strip.set_yticks([])
    strip.set_facecolor("lightgrey")
    # "$" would begin a formula.
    name = str(header.get("name", "")).replace("$", r"\$")
    strip.set_title(f"{name}\nepoch {header['epochs']:g}, segments of {segment_bytes / 1024:g} KiB", fontsize=10)
    figure.colorbar(image, ax=(strip, curve), label="log2 of the score")
    edges = [length / unit * column / count for column in range(count + 1)]
    floor = highest - STEPS_SHOWN
    curve.stairs([max(score, floor) if score == score else floor for score in columns], edges,
                 baseline=floor, fill=True, color="tab:red")
    curve.set_ylabel("log2 of the score")
    curve.set_xlabel(f"offset ({unit_name})")
    curve.set_xlim(0, length / unit)
    curve.set_ylim(floor, highest + 0.5)
    figure.savefig(output, dpi=120, format="png")
    pyplot.close(figure)


if __name__ == "__main__":
    sys.exit(picture.main("heatmap", __doc__, lambda data, output: draw(*read_map(data), output)))
