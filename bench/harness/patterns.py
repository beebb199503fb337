# SPDX-License-Identifier: Apache-2.0
"""How programs read: orders of pieces of one file, as read_list takes them."""
import random

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


def write_list(path, order, length=BLOCK) -> None:
    """One line per read."""
    with open(path, "w", encoding="ascii") as file:
        for block in order:
            file.write("=\n" if block is None else f"{block * BLOCK} {length}\n")
