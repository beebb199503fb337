# SPDX-License-Identifier: Apache-2.0
"""Twelve small programs for bench/suites/models.py, as scripts of the worker io_script.

Each is like programs that people run in what it reads and writes, in which order and how it computes in between. Sizes
are such that the testbed's disk takes one to some seconds for each.
"""
import dataclasses
import random

KIB = 1 << 10
MIB = 1 << 20


@dataclasses.dataclass
class Program:
    """inputs: sizes of the files that must be there before it runs. Lines are those of one process after the other."""
    name: str
    inputs: dict = dataclasses.field(default_factory=dict)
    lines: list = dataclasses.field(default_factory=list)

    def process(self) -> None:
        self.lines.append("process")

    def sleep_ms(self, milliseconds: float) -> None:
        self.lines.append(f"sleep {round(milliseconds * 1000)}")

    def open(self, name: str, how: str) -> None:
        self.lines.append(f"open {name} {how}")

    def close(self, name: str) -> None:
        self.lines.append(f"close {name}")

    def fsync(self, name: str) -> None:
        self.lines.append(f"fsync {name}")

    def read(self, name: str, offset: int, length: int) -> None:
        self.lines.append(f"read {name} {offset} {length}")

    def write(self, name: str, offset: int, length: int) -> None:
        self.lines.append(f"write {name} {offset} {length}")

    def read_all(self, name: str, size: int, request: int = MIB) -> None:
        self.open(name, "r")
        for at in range(0, size, request):
            self.read(name, at, min(request, size - at))
        self.close(name)

    def write_all(self, name: str, size: int, request: int = MIB) -> None:
        self.open(name, "w")
        for at in range(0, size, request):
            self.write(name, at, min(request, size - at))
        self.close(name)

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"


def maker(program: Program) -> str:
    """The script that writes the inputs."""
    writer = Program("inputs")
    writer.process()
    for name, size in program.inputs.items():
        writer.write_all(name, size)
    return writer.text()


def checkpoint(scale: int) -> Program:
    """Two processes compute and then write a new file each, five times."""
    program = Program("checkpoint")
    for process in range(2):
        program.process()
        for phase in range(5):
            program.sleep_ms(5 * scale)
            program.write_all(f"checkpoint.{process}.{phase}", scale * 256 * KIB)
    return program


def strided(scale: int) -> Program:
    """Every fourth block of a file, as one variable of a record, with some computing after each."""
    program = Program("strided", {"records": scale * 3 * MIB})
    program.process()
    program.open("records", "r")
    for at in range(0, scale * 3 * MIB, 256 * KIB):
        program.read("records", at, 64 * KIB)
        program.sleep_ms(3)
    return program


def tiles(scale: int) -> Program:
    """Tiles of a matrix, row piece after row piece; all twice, first by columns and then by rows of tiles."""
    rows, row, piece, high = scale, 512 * KIB, 32 * KIB, 16
    program = Program("tiles", {"matrix": rows * row})
    program.process()
    program.open("matrix", "r")
    places = [(top, left) for left in range(0, row, 8 * piece) for top in range(0, rows, high)]
    for top, left in places + sorted(places):
        for line in range(top, min(top + high, rows)):
            program.read("matrix", line * row + left, piece)
        program.sleep_ms(20)
    return program


def shuffle(scale: int) -> Program:
    """Two epochs of all samples of 128 KiB in an order that chance makes, in batches."""
    samples, sample, batch = 6 * scale, 128 * KIB, 16
    program = Program("shuffle", {"samples": samples * sample})
    program.process()
    program.open("samples", "r")
    chance = random.Random(7)
    for _ in range(2):
        order = list(range(samples))
        chance.shuffle(order)
        for number, index in enumerate(order):
            program.read("samples", index * sample, sample)
            if number % batch == batch - 1:
                program.sleep_ms(10)
    return program


def log(scale: int) -> Program:
    """Records are appended, and each eighth makes sure that they are stored."""
    program = Program("log")
    program.process()
    program.open("log", "u")
    record = 700
    for number in range(6 * scale):
        program.write("log", number * record, record)
        if number % 8 == 7:
            program.fsync("log")
            program.sleep_ms(2)
    program.close("log")
    return program


def small_files(scale: int) -> Program:
    """Files of some KiB: those that are there are read, and a result is written for each."""
    count = 10 * scale
    program = Program("small_files", {f"in.{number}": 4 * KIB + 16 * number for number in range(count)})
    program.process()
    for number in range(count):
        program.read_all(f"in.{number}", 4 * KIB + 16 * number)
        program.write_all(f"out.{number}", 6 * KIB)
        program.sleep_ms(0.5)
    return program


def montage(scale: int) -> Program:
    """Images are read and projected; the projected ones are read again and become one mosaic."""
    images, size = 12, scale * 64 * KIB
    program = Program("montage", {f"raw.{number}": size for number in range(images)})
    program.process()
    for number in range(images):
        program.read_all(f"raw.{number}", size, 256 * KIB)
        program.sleep_ms(25)
        program.write_all(f"projected.{number}", size, 256 * KIB)
    for number in range(images):
        program.read_all(f"projected.{number}", size, 256 * KIB)
        program.sleep_ms(10)
    program.write_all("mosaic", images * size // 2)
    return program


def climate(scale: int) -> Program:
    """Four processes read the records of their own quarter of a region, in three phases, the second one backwards."""
    records, patch = scale, 256 * KIB
    program = Program("climate", {"fields": records * 4 * patch})
    for process in range(4):
        program.process()
        program.open("fields", "r")
        for phase in range(3):
            order = range(records) if phase != 1 else range(records - 1, -1, -1)
            for record in order:
                program.read("fields", (record * 4 + process) * patch, patch)
                if record % 4 == 3:
                    program.sleep_ms(12)
        program.write_all(f"patch.{process}", scale * 32 * KIB)
    return program


def array(scale: int) -> Program:
    """Two processes read chunks and the edges of those beside them, and write a result of half the size."""
    chunks, chunk, edge = scale, MIB, 64 * KIB
    program = Program("array", {"array": chunks * chunk})
    for process in range(2):
        program.process()
        program.open("array", "r")
        program.open(f"result.{process}", "w")
        mine = range(process * chunks // 2, (process + 1) * chunks // 2)
        for at, index in enumerate(mine):
            if index > 0:
                program.read("array", index * chunk - edge, edge)
            program.read("array", index * chunk, chunk)
            if index + 1 < chunks:
                program.read("array", (index + 1) * chunk, edge)
            program.sleep_ms(8)
            program.write(f"result.{process}", at * chunk // 2, chunk // 2)
        program.close(f"result.{process}")
    return program


def database(scale: int) -> Program:
    """Pages of 8 KiB are read and changed, few of them often, with a log that is stored at each transaction."""
    page, pages = 8 * KIB, 128 * scale
    program = Program("database", {"pages": pages * page})
    program.process()
    program.open("pages", "u")
    program.open("journal", "u")
    chance = random.Random(11)
    at = 0
    for number in range(12 * scale):
        index = min(int(chance.paretovariate(0.6)) - 1, pages - 1) * 7919 % pages
        program.read("pages", index * page, page)
        if number % 4 == 3:
            program.write("pages", index * page, page)
            program.write("journal", at, 512)
            at += 512
        if number % 16 == 15:
            program.fsync("journal")
            program.sleep_ms(1)
    program.close("journal")
    program.close("pages")
    return program


def mixed(scale: int) -> Program:
    """A simulation writes its steps while an analysis reads older ones in order and looks up records at random."""
    program = Program("mixed", {"older": scale * MIB, "records": scale * MIB})
    program.process()
    for step in range(4):
        program.sleep_ms(4 * scale)
        program.write_all(f"step.{step}", scale * 192 * KIB)
    program.process()
    chance = random.Random(5)
    program.open("older", "r")
    program.open("records", "r")
    for at in range(0, scale * MIB, MIB):
        program.read("older", at, MIB)
        program.sleep_ms(8)
        for _ in range(2):
            program.read("records", chance.randrange(scale * MIB // (16 * KIB)) * 16 * KIB, 16 * KIB)
    return program


def repetitive(scale: int) -> Program:
    """Hot files that are read in each round, and cold ones of which each round scans one part."""
    hot, hot_size, rounds = 16, scale * 8 * KIB, 6
    cold = scale * 256 * KIB
    program = Program("repetitive", {**{f"hot.{number}": hot_size for number in range(hot)},
                                     **{f"cold.{number}": cold for number in range(rounds)}})
    program.process()
    for number in range(rounds):
        program.read_all(f"cold.{number}", cold)
        program.sleep_ms(50)
        for index in range(hot):
            program.read_all(f"hot.{(index * 5 + number) % hot}", hot_size, 128 * KIB)
            program.sleep_ms(2)
    return program


MAKERS = (checkpoint, strided, tiles, shuffle, log, small_files, montage, climate, array, database, mixed, repetitive)
FULL_SCALE = 64
QUICK_SCALE = 4


def programs(is_quick: bool) -> list:
    return [make(QUICK_SCALE if is_quick else FULL_SCALE) for make in MAKERS]
