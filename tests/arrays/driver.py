#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The file driver `cairn` under a stock wheel of h5py: no library is preloaded, and the bytes go through a node.

A scene compares what a program of driver_programs.py says and leaves behind with HDF5's own driver, or looks at node
and store while the program waits.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import stage

sys.path.insert(0, str(stage.HERE.parent / "modes"))
from scene import Node  # noqa: E402

PROGRAMS = stage.HERE / "driver_programs.py"
SECONDS = 120
# Nothing is stored in the background while a scene looks, neither for its age nor for its amount.
LATE = {"CAIRN_FLUSH_DELAY_MS": "3600000", "CAIRN_FLUSH_AMOUNT": "1G"}
MIB = 1 << 20


class Stage(Node):
    """A node, and programs that find it by themselves."""

    def __init__(self, python, **variables):
        self.python = python
        super().__init__(ram="64M", tier=None, variables=variables)
        self.native = self.work / "native"
        self.native.mkdir()

    def variables(self, by_name=False, **more):
        chosen = {"CAIRN_DRIVER_BY_NAME": "1"} if by_name else {"HDF5_DRIVER": "cairn"}
        return {**self.environment, "PYTHONWARNINGS": "ignore", "HDF5_PLUGIN_PATH": str(stage.FOLDER), **chosen, **more}

    def run_natively(self, *words):
        return said(self.words(*words), self.native, stage.environment(connector=False, plugin_path=False))

    def run(self, *words, **variables):
        return said(self.words(*words), self.directory, self.variables(**variables))

    def words(self, *words):
        return [self.python, PROGRAMS, *words]

    def compare(self, *words):
        """What the program says and leaves behind is what it says and leaves natively."""
        native, cairn = self.run_natively(*words), self.run(*words)
        assert native == cairn, f"natively:\n{native}\nwith the driver:\n{cairn}"
        self.compare_files()

    def compare_files(self):
        names = sorted(path.name for path in self.native.iterdir() if path.is_file())
        assert names, "no files"
        for name in names:
            # Read by the kernel: the node has no part in it.
            mine, theirs = (self.directory / name).read_bytes(), (self.native / name).read_bytes()
            assert mine == theirs, f"{name} is not the file that HDF5 writes by itself"


class Waiting:
    """A program that says a line and waits for one."""

    def __init__(self, scene, *words, **variables):
        self.process = subprocess.Popen([str(word) for word in scene.words(*words)], cwd=scene.directory, text=True,
                                        env=scene.variables(**variables), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def expect(self, word):
        line = self.process.stdout.readline().strip()
        assert line == word, f"{line!r}, not {word!r}: {self.process.stderr.read()[-2000:] if not line else ''}"

    def go_on(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def end(self):
        out, err = self.process.communicate(timeout=SECONDS)
        assert (self.process.returncode, out, err) == (0, "", ""), (self.process.returncode, out, err[-2000:])


def said(command, directory, environment):
    outcome = stage.under_cairn.execute(command, directory, SECONDS, environment)
    assert outcome.status == 0, f"{outcome}\n{outcome.output[-1500:]}{outcome.errors[-3000:]}"
    assert not outcome.errors, outcome.errors
    return outcome.output


def without_driver(text):
    return "".join(line + "\n" for line in text.splitlines() if not line.startswith("driver"))


# ---- scenes -------------------------------------------------------------------------------------------------


def files_are_the_same(scene):
    said_natively = scene.run_natively("write_all")
    assert said_natively == "driver 0 hooks 0\n", said_natively
    assert scene.run("write_all") == "driver 1 hooks 1\n"
    scene.compare_files()
    assert scene.run("write_all", by_name=True) == "driver 1 hooks 1\n"
    scene.compare_files()
    native = without_driver(scene.run_natively("read_all"))
    assert without_driver(scene.run("read_all")) == native
    # HDF5's own driver opens what this one has written, and the other way round.
    for name in ("plain.h5", "packed.h5", "small.h5"):
        shutil.copy(scene.directory / name, scene.native / name)
        os.remove(scene.directory / name)
        shutil.copy(scene.native / name, scene.directory / name)
    assert without_driver(scene.run_natively("read_all")) == without_driver(scene.run("read_all")) == native


def bytes_are_in_the_node_first(scene):
    """Fails with a driver that does what sec2 does."""
    path = scene.directory / "slow.h5"
    def some_cells(sign):
        return b"".join((sign * n).to_bytes(4, "little", signed=True) for n in range(1000, 1064))

    with Waiting(scene, "write_slowly") as program:
        program.expect("written")
        assert scene.tiers_of("slow.h5").get("ram", 0) >= 4 * MIB, scene.tiers_of("slow.h5")
        assert some_cells(1) not in path.read_bytes(), "the store has the bytes already"
        program.go_on()
        # What H5Fflush() has returned from, other programs read.
        program.expect("flushed")
        assert some_cells(1) in path.read_bytes(), "the store has not the bytes that were flushed"
        program.go_on()
        program.expect("changed")
        assert some_cells(-1) not in path.read_bytes(), "the store has the changes already"
        program.go_on()
        program.expect("closed")
        assert some_cells(-1) in path.read_bytes(), "the store has not the bytes of a closed file"
        program.go_on()
        program.end()


def an_async_close_does_not_wait(scene):
    path = scene.directory / "slow.h5"
    with Waiting(scene, "write_slowly", HDF5_DRIVER_CONFIG="async") as program:
        for word in ("written", "flushed", "changed", "closed"):
            program.expect(word)
            assert not any(path.read_bytes()[4096:]), f"the store has bytes when the program has {word}"
            program.go_on()
        program.end()
    scene.cairn("drain", "--node", "n")
    assert any(path.read_bytes()[4096:])


def another_process_reads_what_one_writes(scene):
    with Waiting(scene, "write_slowly", HDF5_DRIVER_CONFIG="async") as program:
        for word in ("written", "flushed", "changed", "closed"):
            program.expect(word)
            program.go_on()
        program.end()
    code = "import h5py; print(int(h5py.File('slow.h5', 'r')['cells'][1000, 23]))"
    assert said([scene.python, "-c", code], scene.directory, scene.variables()) == f"{-1000 * 1024 - 23}\n"
    # Under `cairn run` the same bytes are read, by HDF5's own driver and by this one.
    run = [stage.under_cairn.CAIRN, "run", "--no-report", "--node", "n", "--", scene.python, "-c", code]
    assert said(run, scene.directory, scene.environment) == f"{-1000 * 1024 - 23}\n"
    assert said(run, scene.directory, {**scene.environment, "HDF5_DRIVER": "cairn"}) == f"{-1000 * 1024 - 23}\n"


def errors_are_the_same(scene):
    prefix = []
    if os.geteuid() == 0 and shutil.which("setpriv"):
        # Permissions are to count for the superuser as well.
        prefix = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--"]
    words = [*prefix, *scene.words("fail")]
    native = said(words, scene.native, stage.environment(connector=False, plugin_path=False))
    cairn = said(words, scene.directory, scene.variables())
    assert native == cairn, f"natively:\n{native}\nwith the driver:\n{cairn}"
    for text in ("FileNotFoundError 2 ", "NotADirectoryError 20 ", "OSError 40 ", "IsADirectoryError 21 ",
                 "FileExistsError 17 ", "BlockingIOError 11 ", "truncated file", "delete 0 False"):
        assert text in native, f"{text}: {native}"
    assert not prefix or "PermissionError 13 " in native, native
    shutil.rmtree(scene.native)
    scene.native.mkdir()
    native, cairn = scene.run_natively("pass_the_limit"), scene.run("pass_the_limit")
    assert native == cairn and "errno = 27" in native, f"natively:\n{native}\nwith the driver:\n{cairn}"


def a_full_disk_is_an_error(scene):
    store = scene.work / "small"
    store.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", store], capture_output=True)
    if mounted.returncode:
        print("  not seen: a disk that is full, for want of the right to mount one")
        return
    try:
        native = said(scene.words("fill_the_disk"), store, stage.environment(connector=False, plugin_path=False))
        (store / "full.h5").unlink()
        cairn = said(scene.words("fill_the_disk"), store, scene.variables())
        for text in (native, cairn):
            assert "errno = 28, error message = 'No space left on device'" in text, (native, cairn)
    finally:
        scene.cairn("down", "--node", "n", "--discard")
        subprocess.run(["umount", "-l", store], check=False)
        scene.up()


def programs_fork(scene):
    scene.compare("fork")


def a_fork_that_fails_keeps_nothing_open(scene):
    """The program lives on, and nobody has its file open."""
    with Waiting(scene, "fork_in_vain") as program:
        program.expect("no child")
        program.expect("closed")
        deadline = time.monotonic() + 5
        while (files := json.loads(scene.cairn("status", "--node", "n", "--json"))["open_store_files"]) != 0:
            assert time.monotonic() < deadline, f"{files} files are open"
            time.sleep(0.05)
        program.go_on()
        program.end()


def several_libraries_share_a_process(scene):
    assert scene.run("several_libraries") == "driver 1 hooks 1\n"
    out = scene.run("several_libraries", HDF5_DRIVER="sec2")
    assert out == "driver 0 hooks 0\n", out


def names_are_the_kernels(scene):
    scene.run("rename_and_remove")


def signals_come_all_the_time(scene):
    scene.run("interrupted")


def handlers_may_jump_out_of_calls(scene):
    program = stage.under_cairn.BUILD / "tests/cairn_driver_jumps"
    assert said([program, stage.DRIVER, "jumps"], scene.directory, scene.variables()) == "3000 jumps\n"
    assert (scene.directory / "jumps").read_bytes() == b"b" * MIB


def the_service_dies_while_a_file_is_open(scene):
    def service():
        return scene.status()["service_pid"]

    with Waiting(scene, "go_on_after_a_death") as program:
        for _ in range(8):
            program.expect("written")
            dead = service()
            os.kill(dead, signal.SIGKILL)
            program.go_on()
        program.end()
    end = time.monotonic() + 30
    while service() == dead and time.monotonic() < end:
        time.sleep(0.05)
    assert service() != dead, "no other service"
    code = "import h5py; print(int(h5py.File('deaths.h5', 'r')['cells'][:].sum(dtype='i8')))"
    native = said([scene.python, "-c", code], scene.directory, stage.environment(connector=False, plugin_path=False))
    assert native == f"{sum(range(MIB))}\n", native


def a_program_is_killed(scene):
    """What it had written is the node's."""
    with Waiting(scene, "write_slowly") as program:
        program.expect("written")
        program.process.kill()
    scene.cairn("drain", "--node", "n")
    data = (scene.directory / "slow.h5").read_bytes()
    assert (123456).to_bytes(4, "little") + (123457).to_bytes(4, "little") in data


def without_a_node_it_is_sec2(scene):
    scene.cairn("down", "--node", "n")
    assert scene.run_natively("write_all") == "driver 0 hooks 0\n"
    assert scene.run("write_all") == "driver 1 hooks 0\n"
    scene.compare_files()
    assert without_driver(scene.run("read_all")) == without_driver(scene.run_natively("read_all"))
    # What a dead node has left behind, and a node that is named but not there, change nothing.
    left = scene.work / "run/left"
    left.mkdir(mode=0o700)
    (left / "node.pid").write_text("1\n")
    assert scene.run("write_all") == "driver 1 hooks 0\n"
    assert scene.run("write_all", CAIRN_NODE_NAME="missing") == "driver 1 hooks 0\n"
    scene.up()
    assert scene.run("write_all", CAIRN_BYPASS="1") == "driver 1 hooks 0\n"
    assert scene.run("write_all", CAIRN_NODE_NAME="missing") == "driver 1 hooks 0\n"
    assert scene.run("write_all", CAIRN_NODE_NAME="n") == "driver 1 hooks 1\n"
    assert scene.run("write_all", CAIRN_NODE_NAME=str(scene.work / "run/n")) == "driver 1 hooks 1\n"
    socket = str(scene.work / "run/n/client.sock")
    assert scene.run("write_all", CAIRN_SOCKET=socket, CAIRN_BUFFER=str(scene.directory)) == "driver 1 hooks 1\n"
    scene.compare_files()


SCENES = [
    (files_are_the_same, {}),
    (bytes_are_in_the_node_first, LATE),
    (an_async_close_does_not_wait, LATE),
    (another_process_reads_what_one_writes, LATE),
    (errors_are_the_same, {}),
    (a_full_disk_is_an_error, {}),
    (programs_fork, LATE),
    (a_fork_that_fails_keeps_nothing_open, LATE),
    (several_libraries_share_a_process, LATE),
    (names_are_the_kernels, LATE),
    (signals_come_all_the_time, {}),
    (handlers_may_jump_out_of_calls, {}),
    (the_service_dies_while_a_file_is_open, {"CAIRN_TEST_CAPACITIES": "deaths=1000000"}),
    (a_program_is_killed, LATE),
    (without_a_node_it_is_sec2, {}),
]


def main():
    stage.need_plugin()
    python = stage.interpreter()
    variables_of = dict(SCENES)

    def play(scene):
        with Stage(python, **variables_of[scene]) as node:
            scene(node)

    return stage.play_scenes(variables_of, play)


if __name__ == "__main__":
    sys.exit(main())
