# SPDX-License-Identifier: Apache-2.0
"""One benchmark per file: run(bench) measures and records cases with bench.at_least / bench.at_most."""
