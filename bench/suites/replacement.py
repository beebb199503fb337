# SPDX-License-Identifier: Apache-2.0
"""Misses of the experts of replacement on streams of page references, against MIN and published policies.

CAIRN_TRACES names a directory with traces of real I/O; without it the generated streams alone are run. A cell is a
stream at one capacity, 1 to 40 % of its pages. An expert closes the part of the gap between LRU and MIN
by which it misses less than LRU, where the gap is at least half a point of the miss ratio.

Each run draws new streams of the classes of harness/drawn_references.py (CAIRN_BENCH_SEED replays one). Their figures
are notes by class, without a bar.
"""
import os
import pathlib
import statistics

from harness import drawn_references, patterns, references
from harness.errors import BenchError

OURS = "ws-plus"
MIN = "farthest-in-future"
# The fixed policies, the best of which is known afterwards.
FIXED = ("fifo", "lru", "lfu", "lfu-aged", "random", "sieve", "s3-fifo", "arc", "lirs", "2q", "mru")
SEED_EXPERTS = ("lru", "lfu", "random")
OTHERS = ("learned", "ws", "segment-score")
SHARES = (0.01, 0.05, 0.1, 0.2, 0.4)
CAPACITY_MIN = 8
GAP_MIN = 0.005
# The two models of the paper that ws is from, at its cache of 64 pages: most misses in percent.
MODELS = {"poisson, tau 20": 16.2, "independent, alpha 1": 38.7}
MODEL_CAPACITY = 64
DRAWN = "drawn/"


def run(bench):
    cells = []
    for name, stream in _streams(bench):
        numbers = references.dense(stream)
        file = bench.scratch / "stream.u32"
        file.write_bytes(numbers.tobytes())
        pages = max(numbers) + 1
        capacities = sorted({max(CAPACITY_MIN, round(share * pages)) for share in SHARES} |
                            ({MODEL_CAPACITY} if name in MODELS else set()))
        result = bench.native(bench.worker("replacement", file, "--capacities", ",".join(map(str, capacities)),
                                           "--experts", ",".join((*FIXED, OURS, MIN, *OTHERS))))
        for capacity in capacities:
            runs = [one for one in result["runs"] if one["capacity"] == capacity]
            cells.append(Cell(name, capacity, pages, len(numbers), runs))
        if not bench.quick:
            _say([cell for cell in cells if cell.stream == name])
    _judge(bench, cells)


class Cell:
    """Misses of all policies on one stream at one capacity."""

    def __init__(self, stream, capacity, pages, references_total, runs):
        self.stream = stream
        self.capacity = capacity
        self.references = references_total
        self.per_page = references_total / capacity
        self.misses = {one["expert"]: one["misses"] for one in runs}
        self.ns = {one["expert"]: one["ns"] for one in runs}
        # A capacity of the model's own is no share of the pages, and counts for the model only.
        self.is_share = any(capacity == max(CAPACITY_MIN, round(share * pages)) for share in SHARES)
        self.has_gap = (self.misses["lru"] - self.misses[MIN]) / references_total >= GAP_MIN

    def gap_closed(self, expert: str = OURS) -> float:
        """Percent."""
        lru = self.misses["lru"]
        return 100 * (lru - self.misses[expert]) / (lru - self.misses[MIN])

    def over_best_of(self, experts, expert: str = OURS) -> float:
        """How many more misses than the best of them, in percent."""
        return 100 * (self.misses[expert] / min(self.misses[one] for one in experts) - 1)


def _streams(bench):
    directory = os.environ.get("CAIRN_TRACES", "")
    yield from references.generated(0.02 if bench.quick else 1).items()
    seed = patterns.new_seed()
    for name in drawn_references.CLASSES:
        yield DRAWN + name, drawn_references.drawn(name, seed, 4000 if bench.quick else 80_000)
    if not directory:
        bench.note("no traces of real I/O: CAIRN_TRACES=DIRECTORY names them")
        return
    found = references.traces(pathlib.Path(directory))
    if not found:
        raise BenchError(f"CAIRN_TRACES: {directory} holds no traces (*.csv, *.lis, *.trace, *.u32, or packed)")
    for name, path in found.items():
        yield name, references.read_trace(path)


def _say(cells):
    for cell in cells:
        best = min(FIXED, key=cell.misses.get)
        print(f"  {cell.stream}, {cell.capacity} pages: " + ", ".join(
            f"{expert} {100 * cell.misses[expert] / cell.references:.1f}"
            for expert in dict.fromkeys(("lru", best, "learned", OURS, MIN))) + " % misses", flush=True)


def _judge(bench, cells):
    if not bench.quick:
        for name, most in MODELS.items():
            cell = next(one for one in cells if one.stream == name and one.capacity == MODEL_CAPACITY)
            bench.at_most(f"{name}, {MODEL_CAPACITY} pages: misses", 100 * cell.misses[OURS] / cell.references,
                          most, "%")
    cells = [cell for cell in cells if cell.is_share]
    _tell_drawn(bench, [cell for cell in cells if cell.stream.startswith(DRAWN) and cell.has_gap])
    cells = [cell for cell in cells if not cell.stream.startswith(DRAWN)]
    real = [cell for cell in cells if cell.stream not in references.generated(0.02)]
    hpc = [cell for cell in real if cell.stream.startswith("hpc/")]
    for name, group, least in (("real traces", real, 42), ("HPC traces", hpc, 40)):
        judged = [cell for cell in group if cell.has_gap]
        if judged:
            bench.at_least(f"{name}: gap from LRU to MIN closed", statistics.mean(map(Cell.gap_closed, judged)), least,
                           "%", detail=f"{len(judged)} cells; " + _closed_by(judged, "learned", "s3-fifo", "arc", "ws"))
    over = [cell.over_best_of(SEED_EXPERTS) for cell in cells if cell.has_gap]
    bench.at_least("cells at most 1 % over the best of LRU, LFU, Random",
                   100 * sum(one <= 1 for one in over) / len(over), 92, "%", detail=f"of {len(over)}")
    bench.at_most("and never over it by more than", max(over), 13, "%", detail=_worst(cells, SEED_EXPERTS))
    long = [cell for cell in cells if cell.has_gap and cell.per_page >= 20]
    if long:
        over = sorted(cell.over_best_of(FIXED) for cell in long)
        bench.at_most("over the best of 11 fixed policies, 20 references a page: mean", statistics.mean(over), -1.5,
                      "%", detail=f"{len(long)} cells")
        bench.at_most("95th percentile of that", over[min(len(over) - 1, int(0.95 * len(over)))], 5, "%",
                      detail=_worst(long, FIXED))
    bench.at_most("cost of a reference", statistics.median(cell.ns[OURS] for cell in cells) / 1000, 1, "us",
                  detail=f"at most {max(cell.ns[OURS] for cell in cells) / 1000:.2f}, lru "
                         f"{statistics.median(cell.ns['lru'] for cell in cells) / 1000:.3f}")


def _tell_drawn(bench, cells):
    for name in dict.fromkeys(cell.stream for cell in cells):
        own = [cell for cell in cells if cell.stream == name]
        best = statistics.mean(max(map(cell.gap_closed, FIXED)) for cell in own)
        over = max(cell.over_best_of(("s3-fifo",)) for cell in own)
        bench.note(f"{name}: gap closed {_closed_by(own, OURS, 'learned', 's3-fifo')}, best fixed policy in hindsight "
                   f"{best:.0f} %; at most {over:+.1f} % misses over s3-fifo, in {len(own)} cells")


def _closed_by(cells, *experts) -> str:
    return ", ".join(f"{expert} {statistics.mean(cell.gap_closed(expert) for cell in cells):.0f}"
                     for expert in experts)


def _worst(cells, experts) -> str:
    worst = max((cell for cell in cells if cell.has_gap), key=lambda cell: cell.over_best_of(experts))
    return f"most on {worst.stream}, {worst.capacity} pages: {worst.over_best_of(experts):.1f}"
