# SPDX-License-Identifier: Apache-2.0
"""Which blocks leave a tier, and where to: an expert that has learned how programs read keeps more of what they come
back to, a declared order says what they come back to first, and what nobody comes back to is written nowhere."""

import random
import subprocess
import sys
import time

from stage import BLOCK, MIB, READ_LIST, Stage, under_cairn

NO_PREFETCH = "prefetch:\n  budget: 0\n"
ROUNDS = 8
RAM_MIB = 32
FILE_MIB = 48


def expert(name):
    return f"replacement:\n  expert: {name}\n"


def hit_bytes_of_a_loop(name):
    with Stage(config=NO_PREFETCH + expert(name), ram=f"{RAM_MIB}M") as stage:
        blocks = FILE_MIB * MIB // BLOCK
        path = stage.make("looped", FILE_MIB)
        stage.read_in_order(path, list(range(blocks)) * ROUNDS, compute_us=200)
        counters = stage.counter("read_hit_bytes_ram"), stage.counter("read_miss_bytes")
        assert sum(counters) == ROUNDS * FILE_MIB * MIB, stage.status()["counters"]
        assert stage.status()["fetches"] == []
        return counters[0]


def a_loop_larger_than_ram():
    """A policy that evicts the oldest block never holds the next one of a loop."""
    oldest, learned = hit_bytes_of_a_loop("oldest-first"), hit_bytes_of_a_loop("ws-plus")
    read = ROUNDS * FILE_MIB * MIB
    said = f"from RAM: {learned / MIB:.0f} MiB with ws-plus, {oldest / MIB:.0f} MiB with oldest-first, " \
           f"of {read / MIB:.0f} MiB"
    print(said, flush=True)
    assert learned >= 1.3 * oldest and learned - oldest >= 0.1 * read, said


def missed_bytes_beside_a_hot_block(name):
    """A file is read once, and its first block after each other one."""
    with Stage(config=NO_PREFETCH + expert(name), ram=f"{RAM_MIB // 2}M") as stage:
        path = stage.make("scanned", FILE_MIB)
        order = [block for number in range(1, FILE_MIB * MIB // BLOCK) for block in (0, number)]
        stage.read_in_order(path, order, compute_us=200)
        return stage.counter("read_miss_bytes")


def the_first_block_leaves_by_fifo():
    """However hot it is; the policy of the oldest block keeps it."""
    oldest, fifo = missed_bytes_beside_a_hot_block("oldest-first"), missed_bytes_beside_a_hot_block("fifo")
    assert oldest == FILE_MIB * MIB < fifo, f"{oldest} bytes are missed with oldest-first, {fifo} with fifo"


SHUFFLED_MIB = 64
EPOCHS = 4


def kept_of_a_shuffle(declared, budget, item=BLOCK):
    """The part of the later epochs of a shuffle that was still in RAM from those before, and was not read again."""
    items = SHUFFLED_MIB * MIB // item
    shuffle = random.Random(11)
    order = [number for _ in range(EPOCHS) for number in shuffle.sample(range(items), items)]
    work = under_cairn.work_directory("learning-order")
    (work / "list").write_text("".join(f"{number}\n" for number in order))
    (work / "orders").write_text(f"*/shuffled list {work / 'list'} items={items} item-bytes={item}\n")
    config = f"prefetch:\n  budget: {budget}\n" + (f"  orders: {work / 'orders'}\n" if declared else "")
    with Stage(config=config, ram=f"{RAM_MIB}M") as stage:
        path = stage.make("shuffled", SHUFFLED_MIB)
        pieces = work / "pieces"
        pieces.write_text("".join(f"{number * item} {item}\n" for number in order))
        stage.run(READ_LIST, path, "--list", pieces, "--compute-us", 300)
        kept = kept_of_later_epochs(stage)
        assert "is not followed any more" not in stage.log(), stage.log()
    under_cairn.remove(work)
    return kept


def kept_of_later_epochs(stage):
    from_store = sum(move["bytes"] for move in stage.status()["moves"] if move["from"] == "backing store")
    file = SHUFFLED_MIB * MIB
    return 1 - (from_store - file) / (file * (EPOCHS - 1))


def a_shuffle_that_is_gone_through_again():
    """Nobody declares it; it is found in the second epoch, and from then on what is wanted last leaves first."""
    room = RAM_MIB * 0.9 / SHUFFLED_MIB
    blocks = SHUFFLED_MIB * MIB // BLOCK
    shuffle = random.Random(13).sample(range(blocks), blocks)
    for reopened in (False, True):
        order = [*shuffle, *([None] if reopened else [])] * EPOCHS
        with Stage(ram=f"{RAM_MIB}M") as stage:
            path = stage.make("shuffled", SHUFFLED_MIB)
            reader = stage.start(*stage.reading(path, order, compute_us=500), stdout=subprocess.DEVNULL)
            known = 0
            while reader.poll() is None:
                known = max([known, *(line["known_ahead"] for line in stage.status()["replacement"])])
                time.sleep(0.05)
            kept = kept_of_later_epochs(stage)
        print(f"of later epochs still in RAM: {kept:.0%} of an order that is found, {known} reads known at once; "
              f"there is room for {room:.0%}", flush=True)
        assert reader.returncode == 0 and known >= blocks // 2
        assert kept >= 0.6 * room


def a_declared_shuffle_larger_than_ram():
    """What will be read soonest stays, as much as there is room for; without the order that is anybody's guess."""
    room = RAM_MIB * 0.9 / SHUFFLED_MIB  # the rest is kept free
    guessed, known = (kept_of_a_shuffle(declared, 0) for declared in (False, True))
    ahead = kept_of_a_shuffle(True, 25)
    print(f"of later epochs still in RAM: {known:.0%} with the order declared, {ahead:.0%} with fetching ahead too, "
          f"{guessed:.0%} without; there is room for {room:.0%}", flush=True)
    assert known >= 0.9 * room and known >= 1.25 * guessed
    assert ahead >= 0.6 * room and ahead > guessed


READ_FILES = """
import sys, time
for line in open(sys.argv[1]):
    with open(line.strip(), "rb") as file:
        file.read()
    time.sleep(0.0005)
"""


def kept_of_shuffled_files(declared):
    """The same of many files that are opened one after the other."""
    size = 2 * BLOCK
    work = under_cairn.work_directory("learning-files")
    (work / "files").mkdir()
    names = [work / "files" / str(number) for number in range(SHUFFLED_MIB * MIB // size)]
    for name in names:
        name.write_bytes(random.randbytes(size))
    shuffle = random.Random(12)
    order = [name for _ in range(EPOCHS) for name in shuffle.sample(names, len(names))]
    (work / "list").write_text("".join(f"{name}\n" for name in order))
    (work / "orders").write_text(f"* list {work / 'list'} lines=files\n")
    config = NO_PREFETCH + (f"  orders: {work / 'orders'}\n" if declared else "")
    with Stage(config=config, ram=f"{RAM_MIB}M", also_buffered=work / "files") as stage:
        stage.run(sys.executable, "-c", READ_FILES, work / "list")
        missed = stage.counter("read_miss_bytes")
        assert missed + stage.counter("read_hit_bytes_ram") == size * len(order), stage.status()["counters"]
        assert "is not followed any more" not in stage.log(), stage.log()
    under_cairn.remove(work)
    return 1 - (missed - size * len(names)) / (size * len(names) * (EPOCHS - 1))


def a_declared_order_of_files():
    room = RAM_MIB * 0.9 / SHUFFLED_MIB
    guessed, known = (kept_of_shuffled_files(declared) for declared in (False, True))
    print(f"of later epochs still in RAM: {known:.0%} with the order of the files declared, {guessed:.0%} without; "
          f"there is room for {room:.0%}", flush=True)
    assert known >= 0.8 * room and known >= 1.25 * guessed


def bytes_put_into(stage, tier):
    return sum(move["bytes"] for move in stage.status()["moves"] if move["to"] == tier)


def admission(how):
    return f"replacement:\n  admission: {how}\n"


@under_cairn.judged_by_speed
def a_scan_wears_no_tier():
    """Nobody comes back to what is read once: after it has been seen for a while, it is dropped instead of written."""
    put = {}
    for how in ("always", "value"):
        with Stage(config=admission(how), ram="16M", tier="128M") as stage:
            path = stage.make("scanned", 192)
            stage.read_in_order(path, range(192 * MIB // BLOCK), compute_us=200)
            put[how] = bytes_put_into(stage, "tier1")
            reasons = {move["reason"] for move in stage.status()["moves"]}
            assert ("not admitted" in reasons) == (how == "value"), reasons
            assert ("not admitted" in stage.cairn("status", "--node", "n")) == (how == "value")
    said = f"written to the tier below: {put['value'] / MIB:.1f} MiB of {put['always'] / MIB:.1f} MiB"
    print(said, flush=True)
    assert put["always"] >= 120 * MIB and put["value"] <= 0.2 * put["always"], said


@under_cairn.judged_by_speed
def a_loop_keeps_the_tier_below():
    """Blocks that are used again are worth their place there, and are not read from the backing store again."""
    from_store = {}
    for how in ("always", "value"):
        with Stage(config=admission(how), ram=f"{RAM_MIB}M", tier="64M") as stage:
            path = stage.make("looped", FILE_MIB)
            stage.read_in_order(path, list(range(FILE_MIB * MIB // BLOCK)) * ROUNDS, compute_us=200)
            from_store[how] = stage.counter("read_miss_bytes") + stage.fetched()["fetched_bytes"]
            hits = stage.counter("read_hit_bytes_file")
            assert bytes_put_into(stage, "tier1") > 0 and hits > 0, stage.status()["moves"]
    said = f"from the store: {from_store['value'] / MIB:.0f} MiB by value, {from_store['always'] / MIB:.0f} MiB always"
    print(said, flush=True)
    assert from_store["value"] <= 1.25 * from_store["always"] + 8 * MIB, said


def unknown_admission_is_refused():
    work = under_cairn.work_directory("learning-refused")
    (work / "cairn.yaml").write_text(admission("never"))
    words = [under_cairn.CAIRN, "up", "--name", "n", "--ram", "16M", "--tier", "none", "--config", work / "cairn.yaml"]
    done = subprocess.run([str(word) for word in words], cwd=work, env=under_cairn.clean_environment(), text=True,
                          capture_output=True, timeout=60, stdin=subprocess.DEVNULL)
    assert done.returncode == 2, f"{done.returncode}: {done.stderr}"
    for word in ("replacement.admission", "never", "always, value", "cairn.yaml"):
        assert word in done.stderr, done.stderr
    under_cairn.remove(work)


def experts_are_reported():
    with Stage(tier="32M", ram="16M") as stage:
        path = stage.make("read", 24)
        stage.read_in_order(path, list(range(24 * MIB // BLOCK)) * 2, compute_us=100)
        stage.cairn("heatmap", "--node", "n", path)  # by then all events have come
        lines = stage.status()["replacement"]
        assert {line["tier"] for line in lines} == {"ram", "tier1"}, lines
        for line in lines:
            assert line["expert"] == "ws-plus", line
            assert line["follows"] in ("learned", "s3-fifo", "lirs", "lru"), line
            # A segment that is read in several pieces is one reference.
            assert 24 <= line["references"] and 0 < line["misses"] <= line["references"], line
        # All that was read has room in both tiers together: nothing is missed twice.
        by_tier = {line["tier"]: line for line in lines}
        assert by_tier["tier1"]["misses"] <= by_tier["tier1"]["references"] / 2 + 1, lines
        assert by_tier["tier1"]["misses"] <= by_tier["ram"]["misses"], lines
    with Stage(config=expert("lru")) as stage:
        path = stage.make("read", 16)
        stage.read_in_order(path, range(16), compute_us=0)
        stage.cairn("heatmap", "--node", "n", path)
        [line] = stage.status()["replacement"]
        assert line["expert"] == "lru" and line["follows"] == "lru" and line["tier"] == "ram", line
    for name in ("oldest-first", "fifo"):
        with Stage(config=expert(name)) as stage:
            path = stage.make("read", 16)
            stage.read_in_order(path, range(16), compute_us=0)
            stage.cairn("heatmap", "--node", "n", path)
            assert stage.status()["replacement"] == [], "nothing is learned"


def unknown_expert_is_refused():
    work = under_cairn.work_directory("learning-refused")
    (work / "run").mkdir(mode=0o700)
    (work / "cairn.yaml").write_text(expert("clairvoyant"))
    environment = under_cairn.clean_environment({"CAIRN_RUN_ROOT": str(work / "run")})
    by_variable = {**environment, "CAIRN_REPLACEMENT_EXPERT": "clairvoyant"}
    for variables, options in ((environment, ("--config", work / "cairn.yaml")), (by_variable, ())):
        words = [under_cairn.CAIRN, "up", "--name", "n", "--ram", "16M", "--tier", "none", *options]
        done = subprocess.run([str(word) for word in words], cwd=work, env=variables, text=True, capture_output=True,
                              timeout=60, stdin=subprocess.DEVNULL)
        assert done.returncode == 2, f"{done.returncode}: {done.stderr}"
        for word in ("clairvoyant", "ws-plus", "oldest-first"):
            assert word in done.stderr, done.stderr
        assert "replacement.expert" in done.stderr or "CAIRN_REPLACEMENT_EXPERT" in done.stderr, done.stderr
    under_cairn.remove(work)


SCENES = [a_loop_larger_than_ram, the_first_block_leaves_by_fifo, a_declared_shuffle_larger_than_ram,
          a_declared_order_of_files, a_shuffle_that_is_gone_through_again,
          a_scan_wears_no_tier, a_loop_keeps_the_tier_below,
          unknown_admission_is_refused, experts_are_reported, unknown_expert_is_refused]
