# SPDX-License-Identifier: Apache-2.0
"""The parts of bench/testbed: state, throttles, loop devices, MooseFS, and the rate check."""
