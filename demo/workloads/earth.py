# SPDX-License-Identifier: Apache-2.0
"""Three short analyses of real files with Python's netCDF4: the height of land by latitude, the monthly
speed of the wind, and the length of the world's coasts by bin. Deterministic."""

import argparse
import pathlib

import netCDF4
import numpy as np

EARTH_RADIUS_KM = 6371.0
# In the binned shoreline format a coordinate is a fraction of its bin in units of 1/65535.
COORDINATE_UNITS = 65535.0


def write(path, **arrays):
    with netCDF4.Dataset(path, "w") as file:
        for name, values in arrays.items():
            axes = tuple(f"{name}_{axis}" for axis in range(values.ndim))
            for axis, length in zip(axes, values.shape):
                file.createDimension(axis, length)
            file.createVariable(name, values.dtype, axes)[:] = values


def heights(inputs, output, band):
    with netCDF4.Dataset(inputs / "climate" / "etopo5.cdf") as file:
        relief = file["ROSE"]
        means = [
            np.ma.mean(relief[row : row + band], dtype=np.float64)
            for row in range(0, relief.shape[0], band)
        ]
    write(output / "heights.nc", mean_height=np.array(means))


def winds(inputs, output):
    with netCDF4.Dataset(inputs / "climate" / "monthly_navy_winds.cdf") as file:
        speed = np.ma.stack(
            [np.ma.hypot(file["UWND"][month], file["VWND"][month]) for month in range(len(file["TIME"]))]
        )
    write(output / "wind_speed.nc", speed=speed.filled(-1).astype(np.float32))


def coasts(inputs, output, name):
    with netCDF4.Dataset(inputs / "shoreline" / name) as file:
        file.set_auto_mask(False)
        bin_degrees = float(file["Bin_size_in_minutes"][0]) / 60
        columns = int(file["N_bins_in_360_longitude_range"][0])
        first_segment = file["Id_of_first_segment_in_a_bin"][:]
        segments_in_bin = file["N_segments_in_a_bin"][:]
        first_point = file["Id_of_first_point_in_a_segment"][:]
        # The file stores unsigned 16-bit numbers in a signed type.
        longitude = file["Relative_longitude_from_SW_corner_of_bin"][:].view(np.uint16)
        latitude = file["Relative_latitude_from_SW_corner_of_bin"][:].view(np.uint16)

    bin_of_segment = np.repeat(np.arange(first_segment.size), segments_in_bin)
    order = np.repeat(first_segment, segments_in_bin)
    order += np.arange(order.size) - np.repeat(
        np.cumsum(segments_in_bin) - segments_in_bin, segments_in_bin
    )
    segment_bin = np.zeros(first_point.size, dtype=np.int64)
    segment_bin[order] = bin_of_segment
    points_in_segment = np.diff(np.append(first_point, longitude.size))
    point_bin = np.repeat(segment_bin, points_in_segment)

    scale = bin_degrees / COORDINATE_UNITS
    south = 90 - bin_degrees * (point_bin // columns + 1)
    y = np.radians(south + latitude * scale)
    x = np.radians(longitude * scale)
    length = EARTH_RADIUS_KM * np.hypot(np.diff(y), np.diff(x) * np.cos((y[1:] + y[:-1]) / 2))
    length[first_point[1:] - 1] = 0  # From the end of one segment to the start of the next.
    by_bin = np.bincount(point_bin[1:], weights=length, minlength=first_segment.size)
    write(output / f"length_{name}", length_km=by_bin.reshape(-1, columns))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--round", type=int, required=True)
    parser.add_argument("inputs", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    options = parser.parse_args()
    heights(options.inputs, options.output, band=4 * options.round)
    winds(options.inputs, options.output)
    coasts(options.inputs, options.output, "binned_GSHHS_f.nc")
    coasts(options.inputs, options.output, "binned_river_f.nc")


if __name__ == "__main__":
    main()
