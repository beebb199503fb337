# SPDX-License-Identifier: Apache-2.0
"""Metadata operations per second, against Redis and memcached over UNIX sockets."""
import statistics

from harness import server

OPERATIONS = {"create": "create", "look_up": "look up", "update": "update"}
KINDS = {"object": "record of an object", "block": "place of a block"}
# How a client speaks to the server: name, requests in flight, operations of each kind, target.
MANNERS = (("one by one", 1, 30_000, 20), ("64 pipelined", 64, 200_000, 4))


def run(bench):
    server.need()
    for processes in (1, 2):
        for manner, depth, records, target in MANNERS:
            count = records // 100 if bench.quick else records
            rounds = [_round(bench, processes, depth, count) for _ in range(bench.pairs)]
            for peer in server.NAMES:
                _judge(bench, rounds, peer, f"{processes} proc., {manner}", target)
    bench.note("operations per second, the catalog's against the server's, of all processes together")


def _round(bench, processes: int, depth: int, records: int) -> dict:
    """The same operations in the catalog and in each server, one after the other."""
    options = ["--processes", processes, "--depth", depth, "--records", records]
    rates = {"catalog": bench.native(bench.worker("metadata", "--store", "catalog", *options))}
    for peer in server.NAMES:
        with server.running(bench, peer) as socket:
            command = bench.worker("metadata", "--store", peer, "--socket", socket, *options)
            rates[peer] = bench.native(command)
    return rates


def _judge(bench, rounds, peer: str, how: str, target: float) -> None:
    for kind, kind_name in KINDS.items():
        for operation, operation_name in OPERATIONS.items():
            case = f"{kind}_{operation}"
            ours, theirs = ([rates[store][case] for rates in rounds] for store in ("catalog", peer))
            ratio = statistics.median(own / other for own, other in zip(ours, theirs))
            bench.at_least(f"{peer}, {how}: {operation_name} a {kind_name}", ratio, target,
                           detail=f"{_rate(ours)} against {_rate(theirs)}")


def _rate(values) -> str:
    return f"{statistics.median(values) / 1e6:.3g} M/s"
