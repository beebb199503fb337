# SPDX-License-Identifier: Apache-2.0
"""What the suites stand on: scratch space, nodes, workers, pairs of measurements, tables."""
