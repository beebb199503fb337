#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Overlapping images of one made-up sky, as FITS files for the montage programs: deterministic, without astropy.

    star_fields.py DIRECTORY --columns 4 --rows 4 --size 1024

Field C of row R becomes fieldR_C.fits, 32-bit floats in the gnomonic projection. Neighbours share a sixth of their
width. Stars are where they belong on the sky; noise, background and its tilt are each field's own, so that there is
something to be corrected.
"""
import argparse
import os

import numpy

CARD = 80
RECORD = 2880
DEGREES_PER_PIXEL = 1 / 3600
CENTRE = (83.8, -5.4)
PIXELS_PER_STAR = 2500
# The radius of a star's picture.
REACH = 7
SPREAD = 1.6


def card_value(value) -> str:
    if isinstance(value, bool):
        return "T" if value else "F"
    if isinstance(value, float):
        return f"{value:.12f}"
    return f"'{value:<8}'" if isinstance(value, str) else str(value)


def header(cards) -> bytes:
    lines = [f"{key:<8}= {card_value(value):>20}" for key, value in cards]
    text = "".join(f"{line:<{CARD}}" for line in [*lines, "END"])
    return text.ljust(-(-len(text) // RECORD) * RECORD).encode("ascii")


def sky(width: int, height: int):
    """Columns, rows and brightness of all stars, in pixels of the sky's plane."""
    generator = numpy.random.default_rng(1)
    count = width * height // PIXELS_PER_STAR
    return (generator.uniform(0, width, count), generator.uniform(0, height, count),
            100 * generator.pareto(1.5, count) + 20)


def add_stars(image, stars, left: float, bottom: float) -> None:
    size = image.shape[0]
    columns, rows, brightness = stars[0] - left, stars[1] - bottom, stars[2]
    inside = (abs(columns - size / 2) < size / 2 + REACH) & (abs(rows - size / 2) < size / 2 + REACH)
    for column, row, light in zip(columns[inside], rows[inside], brightness[inside]):
        first_column, past_column = max(0, int(column) - REACH), min(size, int(column) + REACH)
        first_row, past_row = max(0, int(row) - REACH), min(size, int(row) + REACH)
        if first_column >= past_column or first_row >= past_row:
            continue
        across = numpy.exp(-((numpy.arange(first_column, past_column) - column) / SPREAD) ** 2 / 2)
        along = numpy.exp(-((numpy.arange(first_row, past_row) - row) / SPREAD) ** 2 / 2)
        image[first_row:past_row, first_column:past_column] += (light * numpy.outer(along, across)).astype("f4")


def write_field(plan, stars, column: int, row: int, extent) -> None:
    size, step = plan.size, plan.size * 5 // 6
    # Fractions of a pixel: no field lies exactly on the mosaic's grid.
    left, bottom = column * step + 0.37 * row, row * step + 0.21 * column
    image = numpy.random.default_rng([2, row, column]).standard_normal((size, size), dtype="f4") * 5
    number = row * plan.columns + column
    slope = numpy.linspace(0, 4 + number % 5, size, dtype="f4")
    image += 100 + 7 * (number % 4) + slope[:, None] - slope[None, :] / 2
    add_stars(image, stars, left, bottom)
    cards = [("SIMPLE", True), ("BITPIX", -32), ("NAXIS", 2), ("NAXIS1", size), ("NAXIS2", size),
             ("CTYPE1", "RA---TAN"), ("CTYPE2", "DEC--TAN"), ("CRVAL1", CENTRE[0]), ("CRVAL2", CENTRE[1]),
             ("CRPIX1", extent[0] / 2 - left + 1), ("CRPIX2", extent[1] / 2 - bottom + 1),
             ("CDELT1", -DEGREES_PER_PIXEL), ("CDELT2", DEGREES_PER_PIXEL), ("CROTA2", 0.0),
             ("EQUINOX", 2000.0)]
    with open(os.path.join(plan.directory, f"field{row}_{column}.fits"), "wb") as file:
        file.write(header(cards))
        data = image.astype(">f4").tobytes()
        file.write(data)
        file.write(bytes(-len(data) % RECORD))


def main() -> None:
    parser = argparse.ArgumentParser(description="FITS images of one made-up sky")
    parser.add_argument("directory")
    parser.add_argument("--columns", type=int, default=4)
    parser.add_argument("--rows", type=int, default=4)
    parser.add_argument("--size", type=int, default=1024)
    plan = parser.parse_args()
    step = plan.size * 5 // 6
    extent = (plan.columns * step + plan.size, plan.rows * step + plan.size)
    stars = sky(*extent)
    for row in range(plan.rows):
        for column in range(plan.columns):
            write_field(plan, stars, column, row, extent)
    print("{}")


if __name__ == "__main__":
    main()
