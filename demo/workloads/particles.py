# SPDX-License-Identifier: Apache-2.0
"""A particle simulation that writes each time step to an HDF5 file, as VPIC does: eight variables of
float32 per particle, one contiguous dataset each, one file per step. Deterministic."""

import argparse
import pathlib

import h5py
import numpy as np

BOX = 1.0
WELLS = 24
STEP_SECONDS = 0.02


class Particles:
    """Cold particles that fall into a fixed set of wells, in a box with periodic walls."""

    def __init__(self, count):
        random = np.random.default_rng(20260101)
        self.random_wells = random.random((WELLS, 3), dtype=np.float32)
        self.position = random.random((3, count), dtype=np.float32)
        self.momentum = np.zeros((3, count), dtype=np.float32)
        self.charge = np.where(np.arange(count) % 2, 1, -1).astype(np.float32)
        # Each particle feels one well: one pass over the particles per step, so the program writes far
        # more than it computes, as a checkpointing simulation does at scale.
        self.well = random.integers(0, WELLS, count)

    def advance(self):
        for axis in range(3):
            distance = self.random_wells[self.well, axis] - self.position[axis]
            distance -= np.rint(distance)
            self.momentum[axis] += distance * np.float32(4 * STEP_SECONDS)
            self.position[axis] += self.momentum[axis] * np.float32(STEP_SECONDS * 4)
            self.position[axis] %= np.float32(BOX)

    def variables(self):
        energy = np.float32(0.5) * np.einsum("ij,ij->j", self.momentum, self.momentum)
        names = ("x", "y", "z", "ux", "uy", "uz")
        arrays = (*self.position, *self.momentum)
        return {**dict(zip(names, arrays)), "charge": self.charge, "energy": energy}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--particles", type=int, required=True)
    parser.add_argument("directory", type=pathlib.Path)
    options = parser.parse_args()

    particles = Particles(options.particles)
    for step in range(options.steps):
        particles.advance()
        with h5py.File(options.directory / f"step_{step:03d}.h5", "w") as file:
            group = file.create_group("particles")
            group.attrs["step"] = step
            for name, values in particles.variables().items():
                group.create_dataset(name, data=values)


if __name__ == "__main__":
    main()
