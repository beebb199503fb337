#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs write small files while the service is killed for good and a rescue stores what is dirty: each file is
whole, whenever its program was about to hand it over. Several runs at once, so that programs are interrupted anywhere.

    rescue_races.py [--runs 240] [--at-once 4]
"""

import argparse
import concurrent.futures
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
import crash_points  # noqa: E402
import crash_workloads  # noqa: E402
import under_cairn  # noqa: E402


def race(seed, runs):
    """What went wrong, in words."""
    options = argparse.Namespace(worker=under_cairn.BUILD / "tests/cairn_crash_worker", seed=seed)
    driver = crash_points.Driver(options)
    page = crash_points.Page(driver.work / "page")
    native = driver.stage(crash_workloads.copying)
    driver.natives[crash_workloads.copying] = (native, native.native())
    wrong = []
    for _ in range(runs):
        stage = driver.stage(crash_workloads.copying)
        page.choose("", 0, crash_points.CLIENT)
        try:
            stage.run(page, 1, crash_points.SERVICE_FIRST)
            driver.judge(stage, "a rescue", None)
        except AssertionError as problem:
            wrong.append(str(problem)[:600])
        else:
            under_cairn.remove(stage.work)
    page.close()
    if not wrong:
        under_cairn.remove(driver.work)
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, default=240)
    parser.add_argument("--at-once", type=int, default=4)
    options = parser.parse_args()
    if not under_cairn.have_cairn():
        return under_cairn.SKIPPED
    with concurrent.futures.ProcessPoolExecutor(options.at_once) as pool:
        each = [options.runs // options.at_once] * options.at_once
        wrong = sum(pool.map(race, range(options.at_once), each), [])
    for problem in wrong:
        print("FAILED:", problem)
    print(f"{sum(each)} rescues, {len(wrong)} of them wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
