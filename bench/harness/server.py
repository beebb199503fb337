# SPDX-License-Identifier: Apache-2.0
"""Redis and memcached, started privately on a UNIX socket in the scratch directory and stopped again."""
import contextlib
import os
import shutil
import socket
import subprocess
import time

from .errors import BenchError, Skip

START_SECONDS = 20
STOP_SECONDS = 20
NAMES = ("redis", "memcached")


def need(names=NAMES) -> None:
    """Skips the benchmark where one of the servers is not installed."""
    missing = [name for name in names if _program(name) is None]
    if missing:
        raise Skip(f"needs {' and '.join(missing)} (Debian: redis-server, memcached)")


@contextlib.contextmanager
def running(bench, name: str):
    """The path of the socket of an empty server without persistence; it listens nowhere else."""
    path = bench.scratch / f"{name}.sock"
    path.unlink(missing_ok=True)
    with open(bench.scratch / f"{name}.log", "w+") as log:
        process = subprocess.Popen(_command(bench, name, path), stdin=subprocess.DEVNULL, stdout=log,
                                   stderr=log, cwd=bench.scratch, env=bench.environment,
                                   start_new_session=True)
        try:
            _wait_until_it_listens(process, path, log)
            yield path
        finally:
            _stop(process)


def _program(name: str):
    program = {"redis": "redis-server", "memcached": "memcached"}[name]
    # Debian keeps servers where a user's path need not look.
    return shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/bin")


def _command(bench, name: str, path) -> list:
    if name == "redis":
        return [_program(name), "--port", "0", "--unixsocket", str(path), "--unixsocketperm", "700",
                "--save", "", "--appendonly", "no", "--daemonize", "no", "--dir", str(bench.scratch)]
    # By default it turns to other clients after 20 requests of one.
    command = [_program(name), "--unix-socket", str(path), "--unix-mask", "700", "--memory-limit",
               "2048", "--max-reqs-per-event", "1000"]
    # It refuses to serve as root without being told to.
    return command + (["--user", "root"] if os.geteuid() == 0 else [])


def _wait_until_it_listens(process, path, log) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        with socket.socket(socket.AF_UNIX) as probe, contextlib.suppress(OSError):
            probe.connect(str(path))
            return
        if process.poll() is not None or time.monotonic() > deadline:
            log.seek(0)
            raise BenchError(f"'{process.args[0]}' did not start: {log.read().strip()[-500:]}")
        time.sleep(0.01)


def _stop(process) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
