# SPDX-License-Identifier: Apache-2.0
"""Reads the time steps that particles.py wrote and finds clusters in each, as BD-CATS does: density
clustering on a grid (cells with enough particles are dense, dense cells that touch belong together).
Writes the cluster of every particle and a table of clusters. Deterministic."""

import argparse
import pathlib

import h5py
import numpy as np

CELLS = 48
NO_CLUSTER = np.int32(CELLS**3)
VARIABLES = ("x", "y", "z", "ux", "uy", "uz", "charge", "energy")


def cell_of_particles(variables):
    cell = np.zeros(variables["x"].size, dtype=np.int32)
    for axis in ("x", "y", "z"):
        cell *= CELLS
        cell += np.minimum((variables[axis] * np.float32(CELLS)).astype(np.int32), CELLS - 1)
    return cell


def smallest_neighbour(labels):
    for axis in range(3):
        labels = np.minimum(labels, np.minimum(np.roll(labels, 1, axis), np.roll(labels, -1, axis)))
    return labels


def label_dense_cells(dense):
    """Gives touching dense cells one label: the smallest index among them."""
    numbers = np.arange(CELLS**3, dtype=np.int32).reshape(dense.shape)
    labels = np.where(dense, numbers, NO_CLUSTER)
    jump = np.append(labels.ravel(), NO_CLUSTER)
    while True:
        spread = np.where(dense, smallest_neighbour(labels), NO_CLUSTER)
        # A label is itself the index of a cell: following it once more halves the number of rounds.
        jump[:-1] = spread.ravel()
        spread = jump[spread]
        if np.array_equal(spread, labels):
            return labels
        labels = spread


def find_clusters(variables):
    cell = cell_of_particles(variables)
    population = np.bincount(cell, minlength=CELLS**3)
    threshold = 8 * max(1, cell.size // CELLS**3)
    labels = label_dense_cells((population >= threshold).reshape((CELLS,) * 3)).ravel()
    names, numbers = np.unique(labels, return_inverse=True)
    # The label of sparse cells is the largest, so it sorts last.
    numbers = numbers.astype(np.int32)
    if names[-1] == NO_CLUSTER:
        numbers[numbers == names.size - 1] = -1
        names = names[:-1]
    return numbers[cell], names.size


def cluster_table(variables, labels, count):
    inside = labels >= 0
    members = labels[inside]
    columns = [np.bincount(members, minlength=count).astype(np.float64)]
    for name in VARIABLES:
        columns.append(np.bincount(members, weights=variables[name][inside], minlength=count))
    return np.stack(columns, axis=1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=pathlib.Path)
    directory = parser.parse_args().directory

    with h5py.File(directory / "clusters.h5", "w") as output:
        for path in sorted(directory.glob("step_*.h5")):
            with h5py.File(path, "r") as file:
                variables = {name: file["particles"][name][()] for name in VARIABLES}
            labels, count = find_clusters(variables)
            group = output.create_group(path.stem)
            group.attrs["clusters"] = count
            group.create_dataset("cluster_of_particle", data=labels)
            group.create_dataset("members_and_sums", data=cluster_table(variables, labels, count))


if __name__ == "__main__":
    main()
