# SPDX-License-Identifier: Apache-2.0
"""How a benchmark ends other than well."""


class Skip(Exception):
    """This machine or this user cannot run the benchmark: one printed line, no failure."""


class BenchError(Exception):
    """The benchmark could not be carried out, or contents were wrong."""
