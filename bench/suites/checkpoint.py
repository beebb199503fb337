# SPDX-License-Identifier: Apache-2.0
"""Checkpoint bursts of two processes over a throttled disk, against the same program direct."""
from harness import burst


def run(bench):
    burst.measure(bench, fsync=False)
