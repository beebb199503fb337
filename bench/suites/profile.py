# SPDX-License-Identifier: Apache-2.0
"""What `cairn profile` finds on the testbed's devices, against the rates that they are set to."""
import json
import statistics

from harness.errors import BenchError
from testbed_parts import devices

DEVICES = ("nvme", "ssd", "hdd")
# A latency that an IOPS limit sets: the time of one request at that rate.
LATENCY_TOLERANCE = 15


def run(bench):
    if bench.quick:
        directory = bench.directory("disk")
        _kept(bench, directory, _measure(bench, directory, "--seconds", "0.5", "--space", "8M"))
        return
    for name in DEVICES:
        device = devices.kind(name)
        directory = bench.testbed(name)
        found = [_measure(bench, directory) for _ in range(bench.pairs)]
        _rate(bench, f"{name}: read rate", found, "read_bandwidth", device.read_rate)
        _rate(bench, f"{name}: write rate", found, "write_bandwidth", device.write_rate)
        if device.read_iops:
            _latency(bench, f"{name}: read latency", found, "read_latency", 1 / device.read_iops)
            _latency(bench, f"{name}: write latency", found, "write_latency", 1 / device.write_iops)
        _kept(bench, directory, found[-1])


def _measure(bench, directory, *options) -> dict:
    """One profile of the device under the directory, which must leave nothing behind."""
    document = _profile(bench, "--json", *options, directory)
    if any(directory.iterdir()):
        raise BenchError(f"cairn profile left {list(directory.iterdir())}")
    place = document["places"][0]
    # No device moves less than 64 KiB or more than a TiB in a second, or answers in no time at all.
    for field in ("read_bandwidth", "write_bandwidth"):
        if not 2**16 < place[field] < 2**40:
            raise BenchError(f"{directory}: {field} of {place[field]} bytes/s")
    for field in ("read_latency", "write_latency"):
        if not 1e-8 < place[field] < 10:
            raise BenchError(f"{directory}: {field} of {place[field]} s")
    return place


def _profile(bench, *arguments) -> dict:
    environment = {**bench.environment, "XDG_STATE_HOME": str(bench.directory("state"))}
    return json.loads(bench.output([bench.cairn, "profile", *arguments], environment=environment))


def _rate(bench, case: str, found, field: str, set_rate: float) -> None:
    """The worst of the measurements, because a node has only one."""
    rates = [place[field] for place in found]
    off = max(abs(rate / set_rate - 1) for rate in rates)
    bench.at_most(case, 100 * off, 10, "% off", f"{statistics.median(rates) / 1e6:.1f} of "
                  f"{set_rate / 1e6:.0f} MB/s, spread {100 * found[0]['spread']:.0f} %")


def _latency(bench, case: str, found, field: str, set_latency: float) -> None:
    latencies = [place[field] for place in found]
    off = max(abs(latency / set_latency - 1) for latency in latencies)
    bench.at_most(case, 100 * off, LATENCY_TOLERANCE, "% off",
                  f"{statistics.median(latencies) * 1e3:.2f} of {set_latency * 1e3:.2f} ms")


def _kept(bench, directory, measured) -> None:
    """The node will get the measured figures."""
    listed = _profile(bench, "--list", "--json", directory)["places"][0]
    fields = ("read_bandwidth", "write_bandwidth", "read_latency", "write_latency")
    same = sum(listed[field] == measured[field] for field in fields)
    if same != len(fields):
        raise BenchError(f"measured {measured}, but nodes are told {listed}")
    bench.at_least(f"{directory.parent.name}: kept for nodes", same, len(fields), "figures", listed["from"])
