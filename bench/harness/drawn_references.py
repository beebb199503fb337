# SPDX-License-Identifier: Apache-2.0
"""Streams of page references whose parameters are drawn from a seed, by class of traffic: nothing can be tuned to one
instance of them. Each class stands for something that replacement has to do well at every size of the cache."""
import bisect
import itertools
import random


class Popularity:
    """Zipf over pages from `first` on, in an order of ranks drawn at random."""

    def __init__(self, draw, first: int, pages: int, alpha: float):
        self.draw = draw
        self.pages = list(range(first, first + pages))
        draw.shuffle(self.pages)
        self.cumulated = list(itertools.accumulate(rank ** -alpha for rank in range(1, pages + 1)))

    def next(self) -> int:
        at = bisect.bisect_left(self.cumulated, self.draw.random() * self.cumulated[-1])
        return self.pages[min(at, len(self.pages) - 1)]

    def drift(self, share: float) -> None:
        """A share of the ranks changes its pages."""
        for _ in range(int(share * len(self.pages))):
            one, other = self.draw.randrange(len(self.pages)), self.draw.randrange(len(self.pages))
            self.pages[one], self.pages[other] = self.pages[other], self.pages[one]


def _loop(draw, first, pages, references, noise):
    at = 0
    for _ in range(references):
        if draw.random() < noise:
            yield first + draw.randrange(pages)
        else:
            yield first + at
            at = (at + 1) % pages


def _zigzag(first, pages, references):
    at, step = 0, 1
    for _ in range(references):
        yield first + at
        if not 0 <= at + step < pages:
            step = -step
        at += step


def _recent(draw, first, pages, references, depth, fresh):
    """A page used lately, by an exponential depth, or with probability `fresh` another one, each in its turn."""
    stack = []
    turn = 0
    for _ in range(references):
        at = int(draw.expovariate(1 / depth))
        if draw.random() < fresh or at >= len(stack):
            stack.append(first + turn % pages)
            turn += 1
        else:
            stack.append(stack.pop(-1 - at))
        del stack[:-8 * int(depth) - 8]
        yield stack[-1]


def _taking_turns(draw, parts, burst):
    """The parts' references in bursts of a random length, until the first part ends."""
    while True:
        part = draw.choice(parts)
        for _ in range(1 + int(draw.expovariate(1 / burst))):
            page = next(part, None)
            if page is None:
                return
            yield page


def late_switches(draw, references):
    """A few phases that each suit another policy, some over the same pages."""
    pages = draw.randrange(2000, 12000)
    popular = Popularity(draw, 0, pages, draw.uniform(0.6, 1.1))
    result = []
    while len(result) < references:
        length = int(references * draw.uniform(0.08, 0.3))
        first = draw.choice((0, 0, 1, 2)) * pages // 2
        kind = draw.randrange(5)
        if kind == 0:
            result += [popular.next() for _ in range(length)]
            popular.drift(draw.choice((0, 0.3)))
        elif kind == 1:
            result += _loop(draw, first, int(pages * draw.uniform(0.1, 0.9)), length, draw.choice((0, 0.05)))
        elif kind == 2:
            result += _recent(draw, first, pages, length, pages * draw.uniform(0.02, 0.3), draw.uniform(0.05, 0.4))
        elif kind == 3:
            scan = itertools.cycle(range(3 * pages, 3 * pages + draw.randrange(pages, 3 * pages)))
            result += (popular.next() if draw.random() < 0.6 else next(scan) for _ in range(length))
        else:
            result += _zigzag(first, int(pages * draw.uniform(0.2, 0.9)), length)
    return result[:references]


def short_histories(draw, references):
    """5,000 to 30,000 references: programs of a few loops, popular pages and recent ones, by turns or one by one."""
    references = draw.randrange(5000, 30000) if references > 30000 else references
    parts = []
    first = 0
    for _ in range(draw.randrange(2, 5)):
        pages = draw.randrange(100, 2500)
        kind = draw.randrange(4)
        if kind == 0:
            popular = Popularity(draw, first, pages, draw.uniform(0.6, 1.2))
            parts.append(iter([popular.next() for _ in range(references)]))
        elif kind == 1:
            parts.append(_recent(draw, first, pages, references, pages * draw.uniform(0.02, 0.2),
                                 draw.uniform(0.02, 0.4)))
        else:
            parts.append(_loop(draw, first, pages, references, draw.choice((0, 0, 0.02, 0.1))))
        first += pages
    if draw.random() < 0.3:
        share = references // len(parts)
        return [page for part in parts for page in itertools.islice(part, share)]
    return list(itertools.islice(_taking_turns(draw, parts, draw.choice((1, 10, 100, 1000))), references))


def objects(draw, references):
    """Objects of many sizes (lognormal, read whole), popular ones that drift, and a share that is used once."""
    count = draw.randrange(1000, 5000)
    spread = draw.uniform(0.3, 1.3)
    sizes = [min(256, 1 + int(draw.lognormvariate(0, spread))) for _ in range(count)]
    begins = list(itertools.accumulate(sizes, initial=0))
    popular = Popularity(draw, 0, count, draw.uniform(0.7, 1.1))
    wonders = draw.uniform(0.05, 0.5)
    drift = draw.choice((0, 0.001, 0.01))
    fresh = begins[-1]
    result = []
    while len(result) < references:
        if draw.random() < wonders:
            size = min(256, 1 + int(draw.lognormvariate(0, spread)))
            result += range(fresh, fresh + size)
            fresh += size
        else:
            one = popular.next()
            result += range(begins[one], begins[one] + sizes[one])
        if draw.random() < drift:
            popular.drift(0.02)
    return result[:references]


def loops(draw, references):
    """Loops of several lengths at several rates, partly noisy or turning back: the newest page is the one to evict."""
    parts = []
    first = 0
    for _ in range(draw.randrange(1, 5)):
        pages = int(100 * 80 ** draw.random())
        if draw.random() < 0.2:
            parts.append(_zigzag(first, pages, references))
        else:
            parts.append(_loop(draw, first, pages, references, draw.choice((0, 0, 0.01, 0.1))))
        first += pages
    return list(itertools.islice(_taking_turns(draw, parts, draw.choice((1, 30, 1000))), references))


def frequency(draw, references):
    """Popular pages, whose ranks change slowly or not at all, and scans or noise between."""
    pages = draw.randrange(2000, 15000)
    popular = Popularity(draw, 0, pages, draw.uniform(0.5, 1.0))
    noise = draw.choice((0, 0.2, 0.5))
    lifetime = draw.choice((0, 2000, 10000))
    fresh = itertools.count(pages)
    result = []
    for at in range(references):
        result.append(next(fresh) if draw.random() < noise else popular.next())
        if lifetime and at % lifetime == lifetime - 1:
            popular.drift(0.02)
    return result


def blocks(draw, references):
    """A server's disk: bursts over popular files read in order, recent blocks, and scans that come back at times."""
    count = draw.randrange(100, 600)
    sizes = [min(800, 4 + int(draw.lognormvariate(2.5, 1))) for _ in range(count)]
    begins = list(itertools.accumulate(sizes, initial=0))
    popular = Popularity(draw, 0, count, draw.uniform(0.6, 1.1))
    scanned = draw.randrange(2000, 20000)
    scan_share = draw.uniform(0.05, 0.4)
    recent = _recent(draw, 10 ** 6, 10 ** 6, references, draw.randrange(50, 2000), draw.uniform(0.05, 0.4))
    recent_share = draw.uniform(0.1, 0.6)
    place = 0
    result = []
    while len(result) < references:
        kind = draw.random()
        if kind < scan_share:
            length = draw.randrange(10, 300)
            result += (10 ** 7 + (place + at) % scanned for at in range(length))
            place += length
        elif kind < scan_share + recent_share:
            result += itertools.islice(recent, draw.randrange(10, 300))
        else:
            one = popular.next()
            result += range(begins[one], begins[one] + sizes[one])
        if draw.random() < 0.002:
            popular.drift(0.1)
    return result[:references]


def parallel(draw, references):
    """Ranks of a parallel program: steps that write pieces and read them again in another order, with metadata that
    all use, and pieces that several ranks read at about the same time."""
    ranks = draw.randrange(4, 64)
    piece = draw.randrange(10, 200)
    kept = draw.randrange(1, 5)
    apart = draw.uniform(0, 3) * piece
    metadata = draw.randrange(4, 64)
    readers = draw.randrange(1, 4)
    is_shuffled = draw.random() < 0.5
    result = []
    step = 0
    while len(result) < references:
        base = step % kept * ranks * piece if draw.random() < 0.8 else step * ranks * piece
        accesses = [(at + draw.uniform(0, 1 + apart), rank * piece + at)
                    for rank in range(ranks) for at in range(piece)]
        written = [page for _, page in sorted(accesses)]
        order = list(range(ranks))
        if is_shuffled:
            draw.shuffle(order)
        read = [(reader * draw.uniform(0.5, 2) * piece + at * (1 if is_shuffled else 0.5) + draw.uniform(0, 1 + apart)
                 + place // 8 * piece, rank * piece + at)
                for reader in range(readers) for place, rank in enumerate(order) for at in range(piece)]
        for page in itertools.chain(written, (page for _, page in sorted(read))):
            result.append(base + page)
            if draw.random() < 0.1:
                result.append(-1 - draw.randrange(metadata))
        step += 1
    return result[:references]


CLASSES = {make.__name__: make for make in (late_switches, short_histories, objects, loops, frequency, blocks,
                                            parallel)}


def drawn(name: str, seed: int, references: int = 80_000) -> list:
    """One stream of a class."""
    return CLASSES[name](random.Random(f"{name} {seed}"), references)
