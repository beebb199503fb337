# SPDX-License-Identifier: Apache-2.0
"""Checkpoint bursts with fsync after each phase over a throttled disk, against the same direct."""
from harness import burst


def run(bench):
    burst.measure(bench, fsync=True)
