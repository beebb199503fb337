# SPDX-License-Identifier: Apache-2.0
"""`cairn recover` of 10 GiB that only a durable tier has, against reading that and writing the store, which is done
before it and after it.

The tier is the testbed's nvme, the store its hdd, then its ssd. Node and program are killed when an fsync of the file
has returned; what recovery has brought to the store is compared with what was written.
"""
import os
import shutil
import signal
import sys
import time

MIB = 1 << 20
REQUEST = 8 * MIB


def run(bench):
    megabytes = 64 if bench.quick else 10240
    if not bench.quick:
        bench.need_memory(14, "a RAM tier with 10 GiB of dirty data")
        # A store has the file of before, or the one that is recovered: never both.
        os.environ.setdefault("CAIRN_TESTBED_NVME_SIZE", "32G")
        os.environ.setdefault("CAIRN_TESTBED_SSD_SIZE", "13G")
        os.environ.setdefault("CAIRN_TESTBED_HDD_SIZE", "13G")
    nvme = bench.directory("nvme") if bench.quick else bench.testbed("nvme")
    for name in ("hdd", "ssd"):
        _recover(bench, name, nvme / name, megabytes)


def _recover(bench, name, tier, megabytes):
    store = bench.directory(name) if bench.quick else bench.testbed(name)
    tier.mkdir()
    file = store / "logged"
    words = ["logged_file", file, "--megabytes", megabytes, "--seed", os.getpid()]
    # The log frees itself from three quarters on, and is at most half of its tier.
    log = megabytes * 7 // 5
    config = bench.scratch / "recovery.yaml"
    config.write_text(f"durability: {{log_size: {log}M}}\n")
    node = bench.node("--ram", (megabytes + 256) * MIB, "--trigger", "on-exit", "--config", config,
                      "--tier", f"{tier}:{2 * log * MIB}:durable", name=f"bench-{name}")
    status = node.status()
    bench.output(bench.python_worker(sys.executable, *words, "--kill", status["service_pid"], status["keeper_pid"]),
                 environment=node.preload_environment(store), accept=(-signal.SIGKILL,))
    stored_before = file.stat().st_blocks * 512
    # Not timed: the first write to the testbed's image is slower than any other, and would make the floor a low one.
    _plain_seconds(bench, store, megabytes)
    reading = _seconds(bench, lambda: _read_all(tier / "cairn-durable"))
    before = _plain_seconds(bench, store, megabytes)
    time.sleep(1)  # the kernel closes the files of the killed
    recovering = _seconds(bench, lambda: bench.output([bench.cairn, "recover", tier]))
    bench.output(bench.python_worker(sys.executable, *words, "--check"))
    file.unlink()
    after = _plain_seconds(bench, store, megabytes)
    bench.at_least(f"recovery to the {name}", max(reading, (before + after) / 2) / recovering, 0.9,
                   detail=f"{recovering:.1f} s; reading the tier {reading:.1f} s, writing the store {before:.1f} s "
                          f"before and {after:.1f} s after it")
    shutil.rmtree(tier)
    bench.note(f"{name}: {megabytes} MiB, of which the store had {stored_before // MIB} before")


def _plain_seconds(bench, store, megabytes) -> float:
    seconds = _seconds(bench, lambda: _write(store / "plain", megabytes))
    (store / "plain").unlink()
    return seconds


def _seconds(bench, work) -> float:
    bench.drop_caches()
    begin = time.monotonic()
    work()
    return time.monotonic() - begin


def _read_all(folder) -> None:
    buffer = bytearray(REQUEST)
    for path in sorted(folder.iterdir()):
        with open(path, "rb", buffering=0) as segment:
            while segment.readinto(buffer):
                pass


def _write(path, megabytes) -> None:
    content = os.urandom(REQUEST)
    with open(path, "wb", buffering=0) as file:
        for _ in range(max(1, megabytes * MIB // REQUEST)):
            file.write(content)
        os.fsync(file.fileno())
