# SPDX-License-Identifier: Apache-2.0
"""Epochs of a training loop in shuffled order from a throttled disk: the order declared, against none fetched ahead.

One packed file of equal items, and as many small files, read in batches. RAM holds a quarter of them. The bound is the
same program with a RAM tier that holds everything, filled beforehand. The order is declared as a list, as it would be
made from a seed. The many files are read a second time by a program that takes a while to start, as those that train do
(PyTorch alone takes seconds): one that reads at once waits for its first batch, whoever fetches it.
"""
import random
import statistics
import time

from harness.patterns import BLOCK

MIB = 1 << 20
ITEM = 2 * BLOCK
# The disk does 240 requests a second: 4.2 ms for each item, 8 for a file, which it also has to look up.
COMPUTE_US = 8000
BATCH = 32  # items are read together, then the batch is computed on


def run(bench):
    items, epochs = (64, 2) if bench.quick else (600, 3)
    directory = bench.directory("hdd") if bench.quick else bench.testbed("hdd")
    orders = [random.Random(epoch).sample(range(items), items) for epoch in range(epochs)]
    _packed(bench, directory, items, orders)
    _many(bench, directory, items, orders)


def _packed(bench, directory, items: int, orders) -> None:
    data, reads, declared = directory / "packed", bench.scratch / "reads", bench.scratch / "declared"
    bench.native(bench.worker("read_list", data, "--make", items * ITEM))
    reads.write_text("".join(f"{item * ITEM} {ITEM}\n" for order in orders for item in order))
    declared.write_text("".join(f"{item}\n" for order in orders for item in order))
    orders_file = bench.scratch / "orders"
    # The list is one epoch: it names the items of all of them.
    orders_file.write_text(f"{data} list {declared} items={items} item-bytes={ITEM}\n")
    words = bench.worker("read_list", data, "--list", reads, "--compute-us", 200 if bench.quick else COMPUTE_US,
                         "--batch", BATCH)
    _compare(bench, "one packed file", directory, words, items * ITEM, orders_file, [data])


def _many(bench, directory, items: int, orders) -> None:
    folder = directory / "many"
    folder.mkdir()
    bench.native(bench.worker("read_files", folder, "--make", items, "--bytes", ITEM - 5000))
    reads, names, orders_file = (bench.scratch / name for name in ("numbers", "names", "orders"))
    reads.write_text("".join(f"{item}\n" for order in orders for item in order))
    names.write_text("".join(f"{folder}/{item}\n" for item in range(items)))
    orders_file.write_text(f"{folder}/* list {reads} items={items} item-files={names}\n")
    words = bench.worker("read_files", folder, "--list", reads, "--compute-us", 200 if bench.quick else COMPUTE_US,
                         "--batch", BATCH)
    files = [folder / str(item) for item in range(items)]
    _compare(bench, "many small files", folder, words, items * ITEM, orders_file, files)
    _compare(bench, "the same, a second after the start", folder, words, items * ITEM, orders_file, files, seconds=1)


def _compare(bench, name: str, buffer, words, footprint: int, orders_file, files, seconds=0) -> None:
    """`seconds`: that the program takes to start."""
    def run(ram, config, staged=()):
        return _run(bench, buffer, words, ram, config, seconds, staged)

    pairs = [(run(footprint // 4, f"prefetch:\n  orders: {orders_file}\n"),
              run(footprint // 4, "prefetch:\n  budget: 0\n"),
              run(footprint * 2, "prefetch:\n  budget: 0\n", files))
             for _ in range(1 if bench.quick else 2)]
    stall = statistics.median(none["io_ns"] / ours["io_ns"] for ours, none, _ in pairs)
    bound = statistics.median(ours["wall_ns"] / all_in["wall_ns"] for ours, _, all_in in pairs)
    ours, none, all_in = ([side["io_ns"] / 1e9 for side in sides] for sides in zip(*pairs))
    bench.at_least(f"{name}: stall time of none / with the order declared", stall, 10, "x",
                   detail=f"{statistics.median(ours):.3g} against {statistics.median(none):.3g} s in I/O calls")
    bench.at_most(f"{name}: run time / all in RAM", bound, 1.05, "x",
                  detail=f"{statistics.median(all_in):.3g} s in I/O calls with all in RAM")


def _run(bench, buffer, words, ram: int, config: str, seconds: float, stage_in=()) -> dict:
    settings = bench.scratch / "training.yaml"
    settings.write_text(config)
    bench.drop_caches()
    with bench.node("--ram", ram, "--config", settings) as node:
        if stage_in:
            bench.output([bench.cairn, "stage-in", "--node", node.name, *stage_in])
        time.sleep(seconds)
        return node.run(words, buffer)
