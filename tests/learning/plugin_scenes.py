# SPDX-License-Identifier: Apache-2.0
"""A predictor from a shared object: what it foresees is fetched and counted under its name, and what it does otherwise
harms nobody."""

import subprocess
import sys

from stage import BLOCK, MIB, Stage, under_cairn

EXAMPLE = under_cairn.BUILD / "lib/cairn/growing_stride.so"
MISBEHAVING = under_cairn.BUILD / "tests/plugins"
# The example's order, by triangular numbers: each block of a file of a power of two of them once, at distances that
# grow, so that no distance comes twice.
FILE_BLOCKS = 256
ORDER = [at * (at + 1) // 2 % FILE_BLOCKS for at in range(FILE_BLOCKS)]
COVERAGE_MIN = 0.8

# Any program: this one knows nothing of Cairn, and its sum shows that it has read the right blocks.
PROGRAM = """
import os, sys, time, zlib
path, block = sys.argv[1], int(sys.argv[2])
file, total = os.open(path, os.O_RDONLY), 0
blocks = os.fstat(file).st_size // block
for at in range(blocks):
    total = zlib.crc32(os.pread(file, block, at * (at + 1) // 2 % blocks * block), total)
    time.sleep(0.003)
print(total)
"""


def settings(plugin):
    return f"prefetch:\n  plugin: {plugin}\n"


def read_by_triangular_numbers(stage):
    path = stage.make("table", FILE_BLOCKS * BLOCK // MIB)
    words = [sys.executable, "-c", PROGRAM, path, BLOCK]
    plain = subprocess.run([str(word) for word in words], check=True, text=True, capture_output=True).stdout
    assert stage.run(*words) == plain, "under Cairn the program has read something else"


@under_cairn.judged_by_speed
def the_example_fetches_what_nobody_else_foresees():
    assert EXAMPLE.exists(), f"{EXAMPLE} is not built"
    read = FILE_BLOCKS * BLOCK
    with Stage() as stage:
        read_by_triangular_numbers(stage)
        without = stage.fetched()
        # Among so many triangular numbers some lie in walks.
        assert without["used_bytes"] <= 0.15 * read, f"the order can be foreseen without: {stage.status()['fetches']}"
        assert stage.counter("read_miss_bytes") >= 0.8 * read, stage.status()["counters"]
    with Stage(config=settings(EXAMPLE)) as stage:
        read_by_triangular_numbers(stage)
        of_it = stage.fetched("growing-stride")
        assert of_it["used_bytes"] >= COVERAGE_MIN * read, stage.status()["fetches"]
        assert of_it["used_bytes"] >= 0.9 * of_it["fetched_bytes"], f"fetched in vain: {of_it}"
        assert stage.counter("read_miss_bytes") <= (1 - COVERAGE_MIN) * read, stage.status()["counters"]
        assert "growing-stride" in stage.cairn("status", "--node", "n")
        assert "predictor 'growing-stride' is that of" in stage.log(), stage.log()


def each_byte_is_right():
    with Stage(config=settings(EXAMPLE)) as stage:
        path = stage.make("table", FILE_BLOCKS * BLOCK // MIB)
        stage.read_in_order(path, ORDER)
        assert stage.fetched("growing-stride")["used_bytes"] > 0, stage.status()["fetches"]


def one_that_misbehaves_is_dropped(plugin, says):
    """It is named in the log once, and the predictors that are built in go on."""
    order = [7 * at for at in range(160)]
    with Stage(config=settings(MISBEHAVING / f"{plugin}.so"), ram="128M") as stage:
        path = stage.make("strided", (max(order) + 1) * BLOCK // MIB + 1)
        stage.read_in_order(path, order, compute_us=3000)
        assert stage.fetched()["used_bytes"] >= COVERAGE_MIN * len(order) * BLOCK, stage.status()["fetches"]
        assert stage.fetched("moody")["used_bytes"] == 0, stage.status()["fetches"]
        said = [line for line in stage.log().splitlines() if "predictor 'moody'" in line and "is that of" not in line]
        assert len(said) == 1 and says in said[0] and f"{plugin}.so" in said[0], said
        stage.down()


@under_cairn.judged_by_speed
def one_that_throws():
    one_that_misbehaves_is_dropped("throwing_predictor", "threw an exception: out of ideas; it is not asked any more")


@under_cairn.judged_by_speed
def one_that_loops():
    one_that_misbehaves_is_dropped("looping_predictor", "did not return within 500 ms; it is not asked any more")


def one_that_raves():
    one_that_misbehaves_is_dropped("raving_predictor", "foresees 1 blocks from block -5, which are none")


def what_cannot_be_loaded_keeps_the_node_from_starting():
    for plugin, says in (("no_policy", "defines no cairn_predictor_v1()"),
                         ("other_version_predictor", "is made for version 2 of the interface; this is version 1"),
                         ("missing", "No such file or directory")):
        path = MISBEHAVING / f"{plugin}.so"
        work = under_cairn.work_directory("learning-plugins")
        line = [str(under_cairn.CAIRN), "run", "--ram", "16M", "--tier", "none", "--buffer", str(work), "--", "true"]
        environment = under_cairn.clean_environment({"CAIRN_RUN_ROOT": str(work), "CAIRN_PREFETCH_PLUGIN": str(path)})
        ended = subprocess.run(line, env=environment, text=True, capture_output=True, check=False)
        assert ended.returncode != 0, f"{plugin}: the run has begun"
        for part in ("prefetch.plugin: ", str(path), says):
            assert part in ended.stderr, f"{plugin}: no {part!r} in {ended.stderr}"
        under_cairn.remove(work)


SCENES = [the_example_fetches_what_nobody_else_foresees, each_byte_is_right, one_that_throws, one_that_loops,
          one_that_raves, what_cannot_be_loaded_keeps_the_node_from_starting]
