# SPDX-License-Identifier: Apache-2.0
"""MooseFS over given directories: one master, one chunk server per directory, one FUSE mount.

All of it lives in a network namespace of its own, because the chunk servers refuse 127.0.0.1 and
because nothing outside should reach the servers. Only the FUSE mount is visible to everybody.
"""
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import time

from . import state
from .state import TestbedError, run

NAMESPACE = "cairn-testbed"
ADDRESS = "10.213.77.1"
DIRECTORY = state.ROOT / "pfs"
PACKAGES = ("moosefs-master", "moosefs-chunkserver", "moosefs-client")
PROGRAMS = ("mfsmaster", "mfschunkserver", "mfsmount")
FIRST_CHUNK_SERVER_PORT = 9422


def install_if_missing() -> None:
    if not pathlib.Path("/dev/fuse").exists():
        raise TestbedError("pfs needs /dev/fuse, which this machine does not have")
    if all(shutil.which(program) for program in PROGRAMS):
        return
    if not shutil.which("apt-get"):
        raise TestbedError(f"pfs needs MooseFS; install {', '.join(PACKAGES)}")
    # The packages' start scripts must not start servers of the system: ours run in the namespace.
    run("env", "DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1", "apt-get", "install", "-y", "-qq",
        "--no-install-recommends", *PACKAGES)


def namespace_exists() -> bool:
    return pathlib.Path("/run/netns", NAMESPACE).exists()


def up(chunk_directories) -> None:
    state.record("pfs", namespace=NAMESPACE)
    run("ip", "netns", "add", NAMESPACE)
    run("ip", "-n", NAMESPACE, "link", "set", "lo", "up")
    # The servers' address sits on the namespace's own loopback: traffic cannot leave it.
    run("ip", "-n", NAMESPACE, "address", "add", f"{ADDRESS}/32", "dev", "lo")
    DIRECTORY.mkdir(mode=0o755, exist_ok=True)
    pids = [_start("master", "mfsmaster", _configure_master())]
    state.record("pfs", pids=pids)
    for index, directory in enumerate(chunk_directories):
        pids.append(_start(f"chunk{index + 1}", "mfschunkserver",
                           _configure_chunk_server(index, directory)))
        state.record("pfs", pids=pids)
    _wait_until_servers_joined(len(chunk_directories))
    _mount()


def _mount() -> None:
    point = state.mount_point("pfs")
    point.mkdir(parents=True, exist_ok=True)
    # Not `ip netns exec`: that also enters a private mount namespace, where nobody sees the mount.
    command = ["mfsmount", point, "-H", ADDRESS, "-o", "mfsrlimitnofile=4096"]
    for _attempt in range(50):
        output = _in_namespace(*command, check=False)
        if state.mounted(point):
            break
        time.sleep(0.2)
    else:
        raise TestbedError(f"mfsmount failed: {output.strip()[-400:]}")
    state.record("pfs", mount=str(point))
    point.chmod(0o1777)
    # One copy, striped over both disks, and no trash: a benchmark's file must free its space at once.
    _in_namespace("mfssetgoal", "1", point, check=False)
    _in_namespace("mfssettrashtime", "0", point, check=False)


def _wait_until_servers_joined(count: int) -> None:
    """Both disks must take part from the first byte, or the file is not striped."""
    ports = [FIRST_CHUNK_SERVER_PORT + index for index in range(count)]
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        sockets = _in_namespace("ss", "-Htln", check=False)
        joined = _in_namespace("ss", "-Htn", "state", "established", "dst",
                               f"{ADDRESS}:9420", check=False)
        if (all(f":{port} " in sockets for port in ports) and
                len(joined.splitlines()) >= count):
            time.sleep(0.5)
            return
        time.sleep(0.2)
    raise TestbedError(f"the chunk servers did not join the master in 20 s; see {DIRECTORY}/*.log")


def _configure_master() -> pathlib.Path:
    data = DIRECTORY / "master"
    data.mkdir(exist_ok=True)
    shutil.copy("/var/lib/mfs/metadata.mfs.empty", data / "metadata.mfs")
    exports = DIRECTORY / "exports.cfg"
    exports.write_text("*  /  rw,alldirs,maproot=0:0\n*  .  rw\n")
    return _write_config("master", {
        "WORKING_USER": "root", "WORKING_GROUP": "root", "DATA_PATH": data,
        "EXPORTS_FILENAME": exports, "MATOML_LISTEN_HOST": ADDRESS, "MATOCS_LISTEN_HOST": ADDRESS,
        "MATOCL_LISTEN_HOST": ADDRESS, "LOCK_MEMORY": 0, "BACK_LOGS": 1,
        # The default keeps the first chunks waiting for servers that might still come.
        "REPLICATIONS_DELAY_INIT": 0, "INITIAL_DELAY_BEFORE_START": 0})


def _configure_chunk_server(index: int, directory) -> pathlib.Path:
    name = f"chunk{index + 1}"
    data = DIRECTORY / name
    data.mkdir(exist_ok=True)
    chunks = pathlib.Path(directory) / "chunks"
    chunks.mkdir(exist_ok=True)
    disks = DIRECTORY / f"{name}-disks.cfg"
    disks.write_text(f"{chunks}\n")
    return _write_config(name, {
        "WORKING_USER": "root", "WORKING_GROUP": "root", "DATA_PATH": data,
        "HDD_CONF_FILENAME": disks, "HDD_LEAVE_SPACE_DEFAULT": "64MiB", "BIND_HOST": ADDRESS,
        "MASTER_HOST": ADDRESS, "CSSERV_LISTEN_HOST": ADDRESS,
        "CSSERV_LISTEN_PORT": FIRST_CHUNK_SERVER_PORT + index, "MASTER_RECONNECTION_DELAY": 1})


def _write_config(name: str, options: dict) -> pathlib.Path:
    file = DIRECTORY / f"{name}.cfg"
    file.write_text("".join(f"{key} = {value}\n" for key, value in options.items()))
    return file


def _start(name: str, program: str, config: pathlib.Path) -> int:
    """Starts a server in the foreground of its own session, so that its pid is ours to know."""
    with open(DIRECTORY / f"{name}.log", "wb") as log:
        process = subprocess.Popen(
            ["nsenter", f"--net=/run/netns/{NAMESPACE}", program, "-f", "-c", str(config), "start"],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd="/")
    time.sleep(0.3)
    if process.poll() is not None:
        words = (DIRECTORY / f"{name}.log").read_text()[-600:]
        raise TestbedError(f"{program} did not start: {words.strip()}")
    return process.pid


def _in_namespace(*command, check: bool = True) -> str:
    return run("nsenter", f"--net=/run/netns/{NAMESPACE}", *command, check=check)


def down() -> None:
    state.unmount(state.mount_point("pfs"))
    # mfsmount leaves by itself once unmounted; the servers get a request, and in the end a signal, to go.
    _end(_our_processes())
    if namespace_exists():
        run("ip", "netns", "delete", NAMESPACE, check=False)
    shutil.rmtree(DIRECTORY, ignore_errors=True)
    with contextlib.suppress(OSError):
        state.mount_point("pfs").rmdir()
    state.forget("pfs")


def stop_strays() -> None:
    """For a lost state file: the processes are known by their command lines."""
    _end(_our_processes())


def _our_processes() -> list:
    """MooseFS processes whose command line names our directory; never one of the system's."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes().split(b"\0")
            program = os.path.basename(words[0]).decode(errors="replace")
            named = any(word.startswith(str(state.ROOT).encode()) for word in words[1:])
            if program in PROGRAMS and named:
                found.append(int(entry.name))
    return found


def _end(pids) -> None:
    for number, seconds in ((signal.SIGTERM, 10.0), (signal.SIGKILL, 5.0)):
        for pid in pids:
            with contextlib.suppress(OSError):
                os.kill(pid, number)
        deadline = time.monotonic() + seconds
        while pids and time.monotonic() < deadline:
            for pid in pids:
                with contextlib.suppress(OSError):
                    os.waitpid(pid, os.WNOHANG)
            pids = [pid for pid in pids if _alive(pid)]
            time.sleep(0.05)
        if not pids:
            return


def _alive(pid: int) -> bool:
    try:
        return "State:\tZ" not in pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
