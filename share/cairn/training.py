#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws how trained models of devices fit, as a PNG: `cairn profile --train --png` starts it.

Usage: training.py OUTPUT.png < LINES

LINES has one JSON object a line for each model (place, access, model, r_squared, median_relative, and the lists
measured and predicted, in seconds), as cli/profile/training_picture.h writes them.
"""

import json
import math
import sys

sys.dont_write_bytecode = True  # the folder may be anybody's

import picture  # noqa: E402


def read_models(data):
    """The objects of the lines, of whose pairs only those stay that have a logarithm."""
    models = []
    for line, text in enumerate(data.decode("utf-8", "replace").split("\n"), 1):
        if not text.strip():
            continue
        try:
            model = json.loads(text)
            pairs = list(zip(model["measured"], model["predicted"], strict=True))
            model["pairs"] = [(measured, predicted) for measured, predicted in pairs if measured > 0 and predicted > 0]
        except (ValueError, TypeError, KeyError) as error:
            raise picture.BadInput(f"line {line}: no model: {error}") from None
        models.append(model)
    if not any(model["pairs"] for model in models):
        raise picture.BadInput("no model came in")
    return [model for model in models if model["pairs"]]


def draw(models, output):
    """Writes the picture. Raises ImportError where matplotlib is missing."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, rows = pyplot.subplots(len(models), 2, figsize=(11, 4.2 * len(models)), squeeze=False, layout="constrained")
    for model, (fit, residuals) in zip(models, rows):
        measured, predicted = zip(*model["pairs"])
        ends = min(measured + predicted), max(measured + predicted)
        fit.loglog(ends, ends, color="grey", linewidth=1)
        fit.loglog(predicted, measured, ".", color="tab:red")
        fit.set_xlabel("predicted (s)")
        fit.set_ylabel("measured (s)")
        # "$" would begin a formula.
        place = str(model["place"]).replace("$", r"\$")
        fit.set_title(f"{place}: {model['access']}, {model['model']} model", fontsize=10)
        residuals.semilogx(predicted, [math.log2(m / p) for m, p in zip(measured, predicted)], ".", color="tab:red")
        residuals.axhline(0, color="grey", linewidth=1)
        residuals.set_xlabel("predicted (s)")
        residuals.set_ylabel("log2 of measured / predicted")
        residuals.set_title(f"cross-validated: R2 {model['r_squared']:.3f}, "
                            f"median error {100 * model['median_relative']:.1f} %", fontsize=10)
    figure.savefig(output, dpi=120, format="png")
    pyplot.close(figure)


if __name__ == "__main__":
    sys.exit(picture.main("training", __doc__, lambda data, output: draw(read_models(data), output)))
