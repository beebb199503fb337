# SPDX-License-Identifier: Apache-2.0
"""How programs read: orders of pieces of one file, as read_list takes them. Those of DRAWN are made from a seed."""
import os
import random
import secrets

BLOCK = 65536


def _nest(*loops, first=0):
    """loops: (steps, blocks apart), the outermost first."""
    blocks = [first]
    for steps, apart in loops:
        blocks = [block + step * apart for block in blocks for step in range(steps)]
    return blocks


def _tiles(rows, columns, tile, ghost):
    blocks = []
    for top in range(0, rows, tile):
        for left in range(0, columns, tile):
            blocks += [row * columns + column
                       for row in range(max(0, top - ghost), min(rows, top + tile + ghost))
                       for column in range(max(0, left - ghost), min(columns, left + tile + ghost))]
    return blocks


def _shuffled(count, seed):
    blocks = list(range(count))
    random.Random(seed).shuffle(blocks)
    return blocks


def _skewed(count, blocks, seed):
    draw = random.Random(seed)
    return [int(200 * (1 / (draw.random() + 1e-9) - 1)) % blocks for _ in range(count)]


def patterns(blocks: int, reads: int) -> dict:
    """Name: blocks in the order of reading, all below `blocks`; None begins another epoch."""
    side = int(blocks**0.5) // 8 * 8
    once = _shuffled(min(reads, blocks // 2), 5)
    made = {
        "sequential": list(range(reads)),
        "strided": [7 * at % blocks for at in range(min(reads, blocks // 7))],
        "reverse": list(range(blocks - 1, blocks - 1 - reads, -1)),
        "nested, 2 levels": _nest((reads // 12, 40), (12, 3)),
        "nested, 3 levels": _nest((reads // 36, 120), (4, 26), (9, 2)),
        "2-D tiles": _tiles(16, blocks // 16, 8, 0),
        "2-D tiles with ghost cells": _tiles(16, blocks // 16, 4, 1),
        "3-D sub-volume": _nest((12, 289), (12, 17), (10, 1)),
        "column-major chunks": [row * side + column for column in range(side) for row in range(side)],
        "the same shuffle, from the second epoch": once + [None] + once + [None] + once,
        "random": random.Random(3).choices(range(blocks), k=reads // 2),
        "skewed irregular": _skewed(reads // 2, blocks, 4),
    }
    return {name: [at for at in order if at is None or at < blocks][:3 * reads] for name, order in made.items()}


# Classes of orders whose parameters are drawn: each function makes one of its class, some `reads` of `blocks`.

def _walks(draw, blocks, reads):
    """Several streams through one descriptor: 2 to 8 walks of different strides, one backwards, at different rates.

    They begin anywhere and may cross each other.
    """
    count = draw.randint(2, 8)
    strides = draw.sample([1, 2, 3, 4, 5, 6, 7, 9, 11], count)
    rates = [draw.choice((1, 1, 2, 3)) for _ in strides]
    backwards = draw.randrange(count)
    in_turns = draw.random() < 0.5
    walks = []
    for at, stride in enumerate(strides):
        walk = range(draw.randrange(blocks // 2), blocks, stride)
        walks.append([blocks - 1 - block for block in walk] if at == backwards else list(walk))
    order, places = [], [0] * count
    while len(order) < reads:
        alive = [at for at in range(count) if places[at] < len(walks[at])]
        if len(alive) < min(count, 2):
            break
        turn = [at for at in alive for _ in range(rates[at])]
        for at in turn if in_turns else [draw.choice(turn)]:
            if places[at] < len(walks[at]):
                order.append(walks[at][places[at]])
                places[at] += 1
    return order


def _extents(draw, blocks, reads):
    """The whole file in extents of some 100 KiB to MiB in random order, each from its first block to its last."""
    shortest, longest = draw.randint(2, 6), draw.randint(16, 48)
    extents, first = [], 0
    while first < blocks:
        length = min(draw.randint(shortest, longest), blocks - first)
        extents.append(range(first, first + length))
        first += length
    draw.shuffle(extents)
    return [block for extent in extents for block in extent][:reads]


def _changing_shuffle(draw, blocks, reads):
    """Four epochs of a permutation; before each 10 % of the items of the one before change places."""
    epoch = draw.sample(range(blocks), min(blocks // 2, reads))
    order = []
    for number in range(4):
        if number:
            places = draw.sample(range(len(epoch)), len(epoch) // 10)
            for place, item in zip(places, draw.sample([epoch[at] for at in places], len(places))):
                epoch[place] = item
            order.append(None)
        order += epoch
    return order


def _hilbert_place(side, at):
    """Column and row of step `at` of the Hilbert curve through a square of a power of two."""
    x = y = 0
    scale = 1
    while scale < side:
        right, up = 1 & (at // 2), 1 & (at ^ (at // 2))
        if not up:
            if right:
                x, y = scale - 1 - x, scale - 1 - y
            x, y = y, x
        x, y = x + scale * right, y + scale * up
        at //= 4
        scale *= 2
    return x, y


def _in_square(blocks, reads, order):
    """The order's first (column, row)s, in the largest square of a power of two."""
    side = 1 << (int(blocks**0.5).bit_length() - 1)
    return [row * side + column for column, row in order(side)][:reads]


def _hilbert(draw, blocks, reads):
    flip = draw.random() < 0.5
    return _in_square(blocks, reads, lambda side: [place[::-1] if flip else place for place in (
        _hilbert_place(side, at) for at in range(side * side))])


def _morton(draw, blocks, reads):
    flip = draw.random() < 0.5

    def order(side):
        bits = side.bit_length() - 1
        for at in range(side * side):
            even = sum((at >> (2 * bit) & 1) << bit for bit in range(bits))
            odd = sum((at >> (2 * bit + 1) & 1) << bit for bit in range(bits))
            yield (odd, even) if flip else (even, odd)
    return _in_square(blocks, reads, order)


def _triangle(draw, blocks, reads):
    """Rows that become longer or shorter by an equal number."""
    change, grows = draw.randint(1, 2), draw.random() < 0.5
    rows = min(int((2 * reads / change)**0.5), int(blocks**0.5))
    pitch = blocks // rows
    lengths = [min(1 + change * row, pitch) for row in range(rows)]
    return [row * pitch + column for row, length in enumerate(lengths if grows else lengths[::-1])
            for column in range(length)][:reads]


def _wavefronts(draw, blocks, reads):
    """Anti-diagonals of a matrix."""
    rows = draw.randint(20, 40)
    columns = blocks // rows
    return [row * columns + front - row for front in range(rows + columns - 1)
            for row in range(max(0, front - columns + 1), min(rows, front + 1))][:reads]


def _cyclic_steps(draw, blocks, reads):
    steps = draw.sample(range(1, 9), 3)
    order, block = [], 0
    while block < blocks and len(order) < reads:
        order.append(block)
        block += steps[len(order) % 3]
    return order


def _drifting_walk(draw, blocks, reads):
    """Small steps at random, mostly forward."""
    back, forward = draw.randint(1, 3), draw.randint(4, 8)
    order, block = [], draw.randrange(blocks // 4)
    while len(order) < reads:
        order.append(block % blocks)
        block += draw.randint(-back, forward)
    return order


def _random(draw, blocks, reads):
    return draw.choices(range(blocks), k=reads // 2)


# Name: how it is made, and how many epochs are read before anything counts.
DRAWN = {
    "walks through one descriptor": (_walks, 0),
    "extents of unknown length": (_extents, 0),
    "a shuffle that changes, from the third epoch": (_changing_shuffle, 2),
    "Hilbert curve": (_hilbert, 0),
    "Morton order": (_morton, 0),
    "triangle": (_triangle, 0),
    "wavefronts": (_wavefronts, 0),
    "steps in a cycle": (_cyclic_steps, 0),
    "drifting random walk": (_drifting_walk, 0),
    "uniformly random": (_random, 0),
}


# Nobody can know what they read next.
WITHOUT_PATTERN = ("random", "skewed irregular", "drifting random walk", "uniformly random")


def new_seed() -> int:
    """Another one for each run; CAIRN_BENCH_SEED repeats one. It is printed, so that it can be repeated."""
    seed = int(os.environ.get("CAIRN_BENCH_SEED", secrets.randbelow(1_000_000)))
    print(f"orders are drawn from seed {seed}", flush=True)
    return seed


def drawn_pattern(name: str, seed: int, blocks: int, reads: int) -> list:
    """One order of a class, its parameters drawn from the seed; like those of patterns()."""
    make, _ = DRAWN[name]
    return make(random.Random(f"{name} {seed}"), blocks, reads)


def write_list(path, order, length=BLOCK) -> None:
    """One line per read."""
    with open(path, "w", encoding="ascii") as file:
        for block in order:
            file.write("=\n" if block is None else f"{block * BLOCK} {length}\n")
