# SPDX-License-Identifier: Apache-2.0
"""What is fetched ahead of programs that read in an order that can be learned, and of those that do not."""

import os
import random
import sys

from stage import BLOCK, MIB, Stage, eventually, under_cairn

BLOCKS_READ = 240
# The part of the reads that found its blocks there already, on a machine that has other things to do as well.
COVERAGE_MIN = 0.8
ORDERS = {
    "sequential": list(range(BLOCKS_READ)),
    "strided": [3 * at for at in range(BLOCKS_READ)],
    "reverse": list(range(BLOCKS_READ - 1, -1, -1)),
    "nested": [outer * 40 + inner * 3 for outer in range(BLOCKS_READ // 12) for inner in range(12)],
}
NO_BUDGET = "prefetch:\n  budget: 0\n"


def megabytes_of(order):
    return (max(order) + 1) * BLOCK // MIB + 1


@under_cairn.judged_by_speed
def orders_are_learned():
    """Each on a node of its own, which has not learned anything else."""
    for name, order in ORDERS.items():
        with Stage() as stage:
            path = stage.make(name, megabytes_of(order))
            stage.read_in_order(path, order, compute_us=3000)
            status = stage.status()
            read = len(order) * BLOCK
            used = sum(line["used_bytes"] for line in status["fetches"])
            fetched = sum(line["fetched_bytes"] for line in status["fetches"])
            assert used >= COVERAGE_MIN * read, f"{name}: {used} of {read} bytes: {status['fetches']}"
            assert used >= 0.8 * fetched, f"{name}: fetched in vain: {status['fetches']}"
            missed = status["counters"]["read_miss_bytes"]
            assert missed <= read - used, f"{name}: {missed} missed of {read}, of which {used} were fetched ahead"
            for line in status["fetches"]:
                assert line["predictor"] and line["late_bytes"] <= line["used_bytes"], line
                gone = line["used_bytes"] + line["evicted_unused_bytes"] + line["unused_bytes"]
                assert gone == line["fetched_bytes"], f"the sums do not agree: {line}"


def without_a_budget_nothing_is_fetched():
    with Stage(config=NO_BUDGET) as stage:
        order = ORDERS["sequential"]
        path = stage.make("sequential", megabytes_of(order))
        stage.read_in_order(path, order, compute_us=500)
        status = stage.status()
        assert status["fetches"] == [], status["fetches"]
        assert status["counters"]["read_miss_bytes"] == len(order) * BLOCK, status["counters"]


def random_reads_fetch_nothing_in_vain():
    with Stage() as stage:
        draw = random.Random(11)
        order = [draw.randrange(48 * MIB // BLOCK) for _ in range(300)]
        path = stage.make("random", 48)
        stage.read_in_order(path, order, compute_us=1000)
        fetched = stage.fetched()
        assert fetched["fetched_bytes"] - fetched["used_bytes"] <= 0.03 * len(order) * BLOCK, fetched


@under_cairn.judged_by_speed
def second_epoch_is_replayed():
    """The same shuffle again, of a file twice as large as RAM: only its history tells what comes next."""
    with Stage(ram="16M") as stage:
        blocks = 32 * MIB // BLOCK
        shuffle = list(range(blocks))
        random.Random(5).shuffle(shuffle)
        path = stage.make("shuffled", 32)
        stage.read_in_order(path, [*shuffle, None, *shuffle], compute_us=2000)
        replayed = stage.fetched("history-replay")
        # What lies between RAM and the file is a miss again in the second epoch, if nobody remembers the first.
        assert replayed["used_bytes"] >= COVERAGE_MIN * 16 * MIB, stage.status()["fetches"]
        assert stage.counter("read_miss_bytes") <= (32 + 0.2 * 32) * MIB, stage.status()["counters"]


@under_cairn.judged_by_speed
def later_nodes_know_the_order():
    """What one node saw of a shuffle the next one fetches ahead from the first epoch on; a private one, too."""
    orders = under_cairn.work_directory("learning-orders") / "kept" / "here"
    blocks = 32 * MIB // BLOCK
    shuffle = list(range(blocks))
    random.Random(6).shuffle(shuffle)
    with Stage(ram="16M", variables={"CAIRN_PREFETCH_REMEMBER": str(orders)}) as stage:
        path = stage.make("shuffled", 32)
        stage.read_in_order(path, shuffle, compute_us=500)
        assert stage.fetched("history-replay")["fetched_bytes"] == 0 and not orders.exists(), stage.status()["fetches"]
        stage.down()
        assert len(list(orders.iterdir())) == 1, list(orders.iterdir())
        stage.up_again()
        stage.read_in_order(path, shuffle, compute_us=2000)
        replayed = stage.fetched("history-replay")
        assert replayed["used_bytes"] >= COVERAGE_MIN * 32 * MIB, stage.status()["fetches"]
        assert stage.status()["remembered"] == {"directory": str(orders), "files": 1}, stage.status()["remembered"]
        assert "known from earlier nodes: the orders of 1 files" in stage.cairn("status", "--node", "n")
        stage.down()
        report = stage.cairn("run", "--ram", "16M", "--tier", "none", "--buffer", stage.directory, "--",
                             *stage.reading(path, shuffle))
        assert "fetched before it was asked for" in report, report
        # Damaged it is named and begun anew, and nobody reads anything wrong for it.
        [kept] = orders.iterdir()
        kept.write_bytes(kept.read_bytes()[:-20] + b"x" * 20)
        stage.up_again()
        stage.read_in_order(path, shuffle, compute_us=500)
        assert f"{kept}: is damaged: its sum is wrong; begun anew" in stage.log(), stage.log()
        assert stage.fetched("history-replay")["fetched_bytes"] == 0, stage.status()["fetches"]
    under_cairn.remove(orders.parent.parent)


@under_cairn.judged_by_speed
def a_job_declares_its_order():
    """On a node that is up, and from within a run that has just written it; what is wrong with one is said at once."""
    blocks = 400
    shuffle = random.Random(8).sample(range(blocks), blocks)
    work = under_cairn.work_directory("learning-order")
    (work / "list").write_text("".join(f"{item}\n" for item in shuffle))
    (work / "orders").write_text(f"# of this job\n*/packed list list item-bytes={BLOCK}\n")
    (work / "wrong").write_text("*/packed torch-random sede=42 items=10 epochs=1 item-bytes=64K\n")
    (work / "empty").write_text("# nothing\n")
    with Stage() as stage:
        path = stage.make("packed", blocks * BLOCK // MIB + 1)
        # Somebody has been reading something else of it all the while.
        other = stage.reader()
        stage.cairn("stage-in", "--node", "n", "--tier", "ram", path)
        file = other.call("open", str(path), os.O_RDONLY)
        for at in range(8):
            other.call("pread", file, BLOCK, (at * 37 + 11) % blocks * BLOCK)
        for name, words in {"wrong": ("wrong:1", "sede"), "empty": ("declares nothing",),
                            "none": ("none", "No such file")}.items():
            said = stage.cairn("declare", "--node", "n", work / name, status=2)
            assert all(word in said for word in words), said
        stage.cairn("stage-out", "--node", "n", path)
        # In the place of others, of which the store knows more than of them.
        for name in ("list", "orders"):
            (stage.directory / name).write_text("*/packed numpy-permutation seed=1 items=9 epochs=1 item-bytes=4K\n")
        script = 'cat "$1/list" >list && cat "$1/orders" >orders && "$0" declare orders && shift && exec "$@"'
        said = stage.run("sh", "-c", script, under_cairn.CAIRN, work, *stage.reading(path, shuffle))
        assert "declared: 1 order," in said, said
        for at in range(8):
            other.call("pread", file, BLOCK, at * 8 * BLOCK)
        stage.cairn("heatmap", "--node", "n", path)  # by then all events have come
        used = stage.fetched("declared")["used_bytes"]
        assert used >= COVERAGE_MIN * blocks * BLOCK, f"{used / BLOCK} of {blocks} blocks: {stage.status()['fetches']}"
        assert "is not followed any more" not in stage.log(), stage.log()
        assert other.end() == 0, other.errors
    under_cairn.remove(work)


READ_FILES = """
import sys, time
for line in open(sys.argv[1]):
    with open(line.strip(), "rb") as file:
        file.read()
    time.sleep(0.002)
"""


@under_cairn.judged_by_speed
def declared_files_are_there_before_they_are_opened():
    """The first of them before any program runs, and the others although RAM has room for a few of them only."""
    size, count = 2 * BLOCK, 500
    work = under_cairn.work_directory("learning-files")
    (work / "files").mkdir()
    names = [work / "files" / str(number) for number in range(count)]
    for name in names:
        name.write_bytes(random.randbytes(size))
        os.utime(name, (1_000_000_000, 1_300_000_000))
    draw = random.Random(4)
    order = draw.sample(names, count) + draw.sample(names, count)
    (work / "list").write_text("".join(f"{name}\n" for name in order))
    (work / "orders").write_text(f"* list {work / 'list'} lines=files\n")
    config = f"prefetch:\n  orders: {work / 'orders'}\n"
    with Stage(config=config, ram="12M", also_buffered=work / "files") as stage:
        assert eventually(lambda: stage.fetched("declared")["fetched_bytes"] >= 16 * size), stage.status()["fetches"]
        assert stage.counter("read_hit_bytes_ram") == 0, "nobody has read anything yet"
        assert all(os.stat(name).st_atime == 1_000_000_000 for name in names), "nobody has, says the access time, too"
        stage.run(sys.executable, "-c", READ_FILES, work / "list")
        missed = stage.counter("read_miss_bytes") / (size * len(order))
        print(f"{missed:.1%} of what declared files hold was missed", flush=True)
        assert missed <= 0.15, f"{missed:.0%} missed: {stage.status()['fetches']}"
        assert "is not followed any more" not in stage.log(), stage.log()
    under_cairn.remove(work)


def a_wrong_order_is_said_to_who_declared_it():
    """In the report of a run of its own, as nobody reads the log of a node that is gone; else in the status."""
    work = under_cairn.work_directory("learning-wrong")
    (work / "list").write_text("".join(f"{item}\n" for item in range(0, 400, 2)))
    (work / "orders").write_text(f"packed list list item-bytes={BLOCK}\n")
    with Stage(config=f"prefetch:\n  orders: {work / 'orders'}\n") as stage:
        path = stage.make("packed", 400 * BLOCK // MIB)
        words = stage.reading(path, range(399, 200, -2), compute_us=100)
        said = stage.cairn("run", "--config", stage.settings / "cairn.yaml", "--tier", "none", "--", *words)
        assert "warning" in said and "orders:1" in said and "is not the one in which it is read" in said, said
        stage.run(*words)
        stage.cairn("heatmap", "--node", "n", path)  # by then all events have come
        assert "orders:1" in stage.status()["warnings"][0], stage.status()["warnings"]
        assert "warning: " in stage.cairn("status", "--node", "n")
    under_cairn.remove(work)


def what_is_declared_is_fetched_whoever_ends():
    """Other programs of a job script come and go before the one that is meant opens the first file."""
    size, count = 2 * MIB, 32
    work = under_cairn.work_directory("learning-first")
    names = [work / str(number) for number in range(count)]
    for name in names:
        name.write_bytes(random.randbytes(size))
    (work / "list").write_text("".join(f"{name}\n" for name in names))
    (work / "orders").write_text("* list list lines=files\n")
    with Stage(ram="256M", also_buffered=work) as stage:
        stage.cairn("declare", "--node", "n", work / "orders")
        for _ in range(5):
            stage.run("/bin/true")
        fetched = [("fetched_bytes", count * size)]
        assert eventually(lambda: fetched[0] in stage.fetched("declared").items()), stage.status()["fetches"]
    under_cairn.remove(work)


@under_cairn.judged_by_speed
def workers_take_batches_in_turn():
    """A loader's processes, each of which reads its part of the order that is declared for all of them."""
    workers, batch, blocks = 3, 8, 600
    shuffle = random.Random(3).sample(range(blocks), blocks)
    work = under_cairn.work_directory("learning-order")
    (work / "list").write_text("".join(f"{item}\n" for item in shuffle))
    declaration = f"list {work / 'list'} item-bytes={BLOCK} workers={workers} batch={batch}"
    (work / "orders").write_text(f"*/packed {declaration}\n")
    with Stage(config=f"prefetch:\n  orders: {work / 'orders'}\n") as stage:
        path = stage.make("packed", blocks * BLOCK // MIB + 1)
        batches = [shuffle[at:at + batch] for at in range(0, blocks, batch)]
        running = []
        for worker in range(workers):
            part = [block for taken in batches[worker::workers] for block in taken]
            running.append(stage.start(*stage.reading(path, part, 6000, name=f"order{worker}")))
        assert [process.wait() for process in running] == [0] * workers
        assert "is not followed any more" not in stage.log(), stage.log()
        used = stage.fetched("declared")["used_bytes"]
        assert used >= COVERAGE_MIN * blocks * BLOCK, f"{used / BLOCK} of {blocks} blocks: {stage.status()['fetches']}"
    under_cairn.remove(work)


@under_cairn.judged_by_speed
def later_bursts_wait_in_the_file_tier():
    """A program that reads more at once than RAM has room for finds the rest below, and computes meanwhile."""
    burst, bursts = 512, 5
    with Stage(ram="16M", tier="128M") as stage:
        path = stage.make("bursts", burst * bursts * BLOCK // MIB)
        order = list(range(burst * bursts))
        stage.read_in_order(path, order, compute_us=2000, batch=burst)
        status = stage.status()
        below = sum(move["bytes"] for move in status["moves"]
                    if (move["from"], move["to"], move["reason"]) == ("ram", "tier1", "ahead of use"))
        assert below >= burst * BLOCK // 2, f"{below} bytes: {status['moves']}"
        # All of it has been read, a little of it before it came: a program that reads a burst overtakes the fetches.
        fetched = stage.fetched()
        assert fetched["used_bytes"] >= 0.8 * fetched["fetched_bytes"], status["fetches"]
        for line in status["fetches"]:
            assert line["below_bytes"] <= 0.05 * line["fetched_bytes"], f"marked as unread: {line}"


SCENES = [orders_are_learned, workers_take_batches_in_turn, later_bursts_wait_in_the_file_tier,
          without_a_budget_nothing_is_fetched, random_reads_fetch_nothing_in_vain, second_epoch_is_replayed,
          later_nodes_know_the_order, declared_files_are_there_before_they_are_opened,
          a_job_declares_its_order, a_wrong_order_is_said_to_who_declared_it,
          what_is_declared_is_fetched_whoever_ends]
