#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What becomes of written data when the store misbehaves or somebody outside touches the files.

    store_faults.py --store PROGRAM [SCENE ...]

The scenes have the names of the rows of the table "The store, row by row" in docs/semantics.md, and no row is without
one. Those of files that somebody outside touches are in touched_files.py. PROGRAM is the file system of
faulty_store.c, which obeys a file of rules. Where FUSE may not be mounted the test is skipped.
"""

import contextlib
import errno
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
import touched_files  # noqa: E402
from scenes import (  # noqa: E402
    EXIT_NOT_STORED, ask, is_alive, kept_node, messages, mounted, need, need_status, output, processes,
    run_scenes_of_a_store, status_of, under_cairn, wait_until)
from store_runs import SIZE, finish_later, pattern, start_run  # noqa: E402


# ---- the store hangs ---------------------------------------------------------------------------------------


def run_into_a_hang(work, store, options=(), rule="write hang"):
    """A program that has closed its file, and ends when the store hangs."""
    run = start_run(work, store.path, f"""
        fd = os.open('f', os.O_WRONLY | os.O_CREAT); write(fd); os.close(fd)
        open({str(work / 'written')!r}, 'w').close()
        wait_for('hangs')
        """, options=["--trigger", "on-exit", *options])
    wait_until((work / "written").exists, "the program has written")
    store.obey(rule)
    (work / "hangs").touch()
    return run


def scene_the_store_hangs(work, store):
    """The program ends, the run waits and says for what, the node answers meanwhile; then everything is stored."""
    run = run_into_a_hang(work, store)
    wait_until(lambda: "no answer from the backing store" in messages(work), "the run says that the store hangs")
    answer = ask("status", "--node", f"run-{run.pid}", "--json", timeout=20)
    need(answer.status == 0, f"cairn status beside the hang: {answer} {answer.errors}")
    store.obey()
    need_status(run, 0, work)
    need((store.behind / "f").read_bytes() == pattern(), "what is stored differs")


def scene_the_store_hangs_and_the_user_interrupts(work, store):
    """The second signal ends the run: 74, the file and the command are named, and the node ends when it can."""
    run = run_into_a_hang(work, store)
    time.sleep(0.3)
    run.send_signal(signal.SIGTERM)
    wait_until(lambda: "interrupt again" in messages(work) or run.poll() is not None, "the run answers the signal")
    run.send_signal(signal.SIGTERM)
    need_status(run, EXIT_NOT_STORED, work)
    need("store/f:" in messages(work), f"the file is not named: {messages(work)}")
    store.obey()
    finish_later(work, store.behind / "f")


def scene_the_store_hangs_beside_another(work, store):
    """An fsync of a directory waits for its store; those of another store's files do not."""
    sound, tier = work / "sound", work / "tier"
    sound.mkdir()
    tier.mkdir()
    run = start_run(work, store.path, f"""
        import threading
        folder = os.open('.', os.O_RDONLY | os.O_DIRECTORY)
        def create(name): os.close(os.open(name, os.O_WRONLY | os.O_CREAT))
        create('a'); os.fsync(folder)
        fd = os.open({str(sound / 'f')!r}, os.O_RDWR | os.O_CREAT); write(fd); os.fsync(fd)
        create('b')
        open({str(work / 'written')!r}, 'w').close()
        wait_for('hangs')
        time.sleep(1.5)  # what the kernel remembers of the directory is old by then
        waiting = threading.Thread(target=os.fsync, args=[folder]); waiting.start()
        time.sleep(0.5)
        os.pwrite(fd, b'x', 0); os.fsync(fd)
        print('answered', waiting.is_alive())
        open({str(work / 'answered')!r}, 'w').close()
        waiting.join()
        """, options=["--buffer", str(sound), "--tier", f"{tier}:64M:durable"])
    wait_until((work / "written").exists, "the program has written")
    store.obey("getattr hang")
    (work / "hangs").touch()
    try:
        wait_until((work / "answered").exists, "an fsync of another store's file is answered", 15)
    finally:
        store.obey()
    need_status(run, 0, work)
    need(output(work) == ["answered", "True"], f"the program saw {output(work)}")


# ---- the store answers with an error -----------------------------------------------------------------------


def errors_reach_the_program(work, store, number):
    """fsync and close say it, the run ends with 74 and names it, `cairn status` names it, and a drain ends it."""
    name = errno.errorcode[number]
    store.obey(f"write {number}")
    run = start_run(work, store.path, """
        fd = os.open('f', os.O_RDWR | os.O_CREAT); write(fd)
        print(told(os.fsync, fd), os.pread(fd, 4096, 4096) == block, told(os.close, fd))
        """)
    need_status(run, EXIT_NOT_STORED, work)
    need(output(work) == [name, "True", name], f"the program was told {output(work)}")
    need(os.strerror(number) in messages(work), f"the reason is not named: {messages(work)}")
    node = kept_node(work)
    unstored = status_of(node)["unstored"]
    need([entry["errno"] for entry in unstored] == [number], f"cairn status lists {unstored}")
    failed = ask("drain", "--node", node)
    need(failed.status == EXIT_NOT_STORED, f"drain of a store that still fails: {failed}")
    store.obey()
    finish_later(work, store.behind / "f")


def scene_the_store_fails(work, store):
    errors_reach_the_program(work, store, errno.EIO)


def scene_the_store_is_full(work, store):
    errors_reach_the_program(work, store, errno.ENOSPC)


def scene_the_store_is_over_quota(work, store):
    errors_reach_the_program(work, store, errno.EDQUOT)


def scene_the_store_is_read_only(work, store):
    errors_reach_the_program(work, store, errno.EROFS)


def scene_the_store_has_forgotten_everything(work, store):
    errors_reach_the_program(work, store, errno.ESTALE)


def scene_the_store_takes_half(work, store):
    """Short writes are nobody's error."""
    store.obey("write short")
    run = start_run(work, store.path, "fd = os.open('f', os.O_WRONLY | os.O_CREAT); write(fd); os.fsync(fd)")
    need_status(run, 0, work)
    need((store.behind / "f").read_bytes() == pattern(), "what is stored differs")


def scene_the_store_is_flushed_with_an_error(work, store):
    """What fsync could not make durable is stored again by the next one."""
    store.obey("fsync 5")
    run = start_run(work, store.path, f"""
        fd = os.open('f', os.O_WRONLY | os.O_CREAT); write(fd)
        print(told(os.fsync, fd))
        open({str(work / 'told')!r}, 'w').close()
        wait_for('repaired')
        print(told(os.fsync, fd))
        """)
    wait_until((work / "told").exists, "the program was told")
    (store.behind / "f").write_bytes(b"lost by the device")
    store.obey()
    (work / "repaired").touch()
    need_status(run, 0, work)
    need(output(work) == ["EIO", "ok"], f"the program was told {output(work)}")
    need((store.behind / "f").read_bytes() == pattern(), "it was not written again")


def scene_the_store_is_flushed_with_an_error_at_the_end(work, store):
    """What a drain could not make durable is stored again by the next one."""
    store.obey("fsync lost")
    run = start_run(work, store.path, "fd = os.open('f', os.O_WRONLY | os.O_CREAT); write(fd)",
                    options=["--trigger", "on-exit"])
    need_status(run, EXIT_NOT_STORED, work)
    store.obey()
    finish_later(work, store.behind / "f")


def scene_the_store_comes_back(work, store):
    """After a restart the server does not know the descriptors of before (ESTALE): the node opens the file anew."""
    run = start_run(work, store.path, f"""
        fd = os.open('f', os.O_WRONLY | os.O_CREAT); write(fd)
        open({str(work / 'written')!r}, 'w').close()
        wait_for('restarted')
        """, options=["--trigger", "on-exit"])
    wait_until((work / "written").exists, "the program has written")
    store.obey("write stale", "fsync stale", "utimens stale", "truncate stale", "fallocate stale")
    (work / "restarted").touch()
    need_status(run, 0, work)
    need((store.behind / "f").read_bytes() == pattern(), "what is stored differs")


def scene_the_service_dies_while_the_store_errs(work, store):
    """Its successor knows the files that are to be stored without asking the store, which errs for a moment."""
    run = start_run(work, store.path, f"""
        fd = os.open('f', os.O_WRONLY | os.O_CREAT); write(fd); os.close(fd)
        open({str(work / 'written')!r}, 'w').close()
        wait_for('repaired')
        """, options=["--trigger", "on-exit"])
    wait_until((work / "written").exists, "the program has written")
    node = f"run-{run.pid}"
    service = status_of(node)["service_pid"]
    store.obey("getattr 5")
    os.kill(service, signal.SIGKILL)
    wait_until(lambda: status_of(node)["service_pid"] != service, "another service is there")
    store.obey()
    (work / "repaired").touch()
    need_status(run, 0, work)
    need((store.behind / "f").read_bytes() == pattern(), "what is stored differs")


def scene_the_service_dies_in_an_fsync(work, store):
    """Nobody hears that it has failed, so its successor stores again what the tiers have of the file."""
    run = start_run(work, store.path, f"""
        fd = os.open('f', os.O_WRONLY | os.O_CREAT); write(fd)
        open({str(work / 'written')!r}, 'w').close()
        wait_for('repaired')
        """)
    wait_until((work / "written").exists, "the program has written")
    node = f"run-{run.pid}"
    service = status_of(node)["service_pid"]
    store.obey("fsync hang")
    drain = subprocess.Popen([str(under_cairn.CAIRN), "drain", "--node", node], stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    behind = store.behind / "f"
    wait_until(lambda: behind.read_bytes() == pattern(), "all of it is written")
    time.sleep(1)  # and the drain waits for the fsync
    os.kill(service, signal.SIGKILL)
    status = behind.stat()
    behind.write_bytes(b"lost by the device".ljust(SIZE))
    os.utime(behind, ns=(status.st_atime_ns, status.st_mtime_ns))
    store.obey()
    need(drain.wait(60) == 0, "the drain goes on with the next service")
    need(behind.read_bytes() == pattern(), "it was not written again")
    (work / "repaired").touch()
    need_status(run, 0, work)


def scene_a_drain_while_the_store_hangs(work, store):
    """`cairn drain --timeout` ends in time, says what is not stored, and the node keeps it."""
    store.obey("write hang")
    node = f"faults-{os.getpid()}"
    started = ask("up", "--name", node, "--ram", "64M", timeout=60)
    need(started.status == 0, f"cairn up: {started} {started.errors}")
    try:
        script = work / "write.py"
        script.write_text(f"open('f', 'wb').write({pattern()[:4096]!r} * {SIZE // 4096})")
        run = subprocess.Popen([str(under_cairn.CAIRN), "run", "--no-report", "--node", node, "--buffer",
                                str(store.path), "--", sys.executable, str(script)], cwd=store.path,
                               env=under_cairn.clean_environment(), stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(2)
        began = time.monotonic()
        drain = ask("drain", "--node", node, "--timeout", "2", timeout=60)
        need(drain.status == EXIT_NOT_STORED, f"cairn drain beside a hang: {drain} {drain.output} {drain.errors}")
        need(time.monotonic() - began < 30, "cairn drain waited for the store")
        need("store/f" in drain.errors, f"the file is not named: {drain.errors}")
        store.obey()
        need(run.wait(60) == 0, "the run did not end well after the repair")
    finally:
        store.obey()
        ended = ask("down", "--name", node, timeout=60)
    need(ended.status == 0, f"cairn down: {ended} {ended.errors}")
    need((store.behind / "f").read_bytes() == pattern(), "what is stored differs")


def scene_a_second_signal_while_the_store_hangs(work, store):
    """SIGTERM stores first; a second one, while the node stores, ends it as soon as the store answers."""
    store.obey("write hang")
    node = f"faults-{os.getpid()}"
    started = ask("up", "--name", node, "--ram", "64M", timeout=60)
    need(started.status == 0, f"cairn up: {started} {started.errors}")
    script = work / "write.py"
    script.write_text("import pathlib, time\n"
                      f"file = open('f', 'wb', 0)\nfile.write({pattern()[:4096]!r} * {SIZE // 4096})\n"
                      f"pathlib.Path({str(work / 'written')!r}).touch()\ntime.sleep(200)\n")
    run = subprocess.Popen([str(under_cairn.CAIRN), "run", "--no-report", "--node", node, "--buffer",
                            str(store.path), "--", sys.executable, str(script)], cwd=store.path,
                           env=under_cairn.clean_environment(), stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        wait_until((work / "written").exists, "the program has written")
        service, _ = processes(node)
        for _ in range(2):
            os.kill(service, signal.SIGTERM)
            time.sleep(1)
        store.obey()
        wait_until(lambda: not is_alive(service), "the node ends after the second signal", 20)
    finally:
        store.obey()
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
        ask("down", "--name", node, "--discard", timeout=60)


# ---- the time of a job is over -----------------------------------------------------------------------------


def is_running(node):
    return ask("status", "--node", node, timeout=20).status == 0


def need_recovered(work, store, tier, files):
    """The batch system kills the node; the command that the run has named brings everything to the store."""
    match = re.search(r"the durable tier in (\S+) has all of it: .*`cairn recover (\S+)`", messages(work))
    need(match and match.groups() == (str(tier), str(tier)), f"`cairn recover {tier}` is not named: {messages(work)}")
    node = processes(kept_node(work))
    # At once: a service that hears of its keeper's death starts another.
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for process in node:
            os.kill(process, number)
    store.obey()
    wait_until(lambda: not any(map(is_alive, node)), "the node is gone")
    until = time.monotonic() + 20
    # The kernel closes the tier's files a moment after the last thread has gone.
    recovered = ask("recover", str(tier), timeout=120)
    while "is in use" in recovered.errors and time.monotonic() < until:
        time.sleep(0.1)
        recovered = ask("recover", str(tier), timeout=120)
    need(recovered.status == 0, f"cairn recover: {recovered} {recovered.output} {recovered.errors}")
    for name, content in files.items():
        need((store.behind / name).read_bytes() == content, f"{name} differs after cairn recover")


def scene_no_time_is_left(work, store):
    """The run ends after --grace; the node keeps the data, and ends when it is stored."""
    run = run_into_a_hang(work, store, ["--grace", "2"])
    began = time.monotonic()
    need_status(run, EXIT_NOT_STORED, work)
    need(time.monotonic() - began < 8, "the run took longer than its grace")
    need("store/f:" in messages(work), f"the file is not named: {messages(work)}")
    need("goes on storing" in messages(work), f"the run does not say who stores the data: {messages(work)}")
    node = kept_node(work)
    need(is_running(node), f"{node} does not answer")
    store.obey()
    wait_until(lambda: not is_running(node), "the node ends when everything is stored")
    need((store.behind / "f").read_bytes() == pattern(), "what is stored differs")


def scene_no_time_is_left_and_a_tier_is_durable(work, store):
    """The durable tier has what is not stored when the node is killed as well."""
    tier = work / "tier"
    tier.mkdir()
    run = run_into_a_hang(work, store, ["--grace", "2", "--tier", f"{tier}:256M:durable"], "any hang")
    need_status(run, EXIT_NOT_STORED, work)
    need_recovered(work, store, tier, {"f": pattern()})


def scene_a_batch_system_ends_the_job(work, store):
    """SIGTERM, a slow store and a slow end: most files are whole when the program ends, and the tier has the rest."""
    tier = work / "tier"
    tier.mkdir()
    store.obey("write slow")
    small = {f"small-{n}": pattern()[: 4096 * (n + 1)] for n in range(4)}
    run = start_run(work, store.path, f"""
        import signal
        data = block * ({SIZE} // 4096)
        def end(*_):
            wait_for('end')
            with open('late', 'wb', 0) as file: file.write(data * 4)
            time.sleep(0.7)
            os._exit(0)
        signal.signal(signal.SIGTERM, end)
        with open('large', 'wb', 0) as file:
            for _ in range(20): file.write(data)
        for n in range(4):
            with open(f'small-{{n}}', 'wb', 0) as file: file.write(data[: 4096 * (n + 1)])
        open({str(work / 'written')!r}, 'w').close()
        time.sleep(600)
        """, options=["--trigger", "on-exit", "--grace", "6", "--tier", f"{tier}:512M:durable"],
                    flush="retry_ms: 200, streams: 2")
    wait_until((work / "written").exists, "the program has written")
    run.send_signal(signal.SIGTERM)
    time.sleep(3)
    for name, content in small.items():
        need((store.behind / name).read_bytes() == content, f"{name} is not whole while the program ends")
    (work / "end").touch()
    need_status(run, EXIT_NOT_STORED, work)
    large = pattern() * 20
    need((store.behind / "large").read_bytes() != large, "all is stored: the scene shows nothing")
    need_recovered(work, store, tier, {"large": large, "late": pattern() * 4, **small})


@contextlib.contextmanager
def prepare(work, program):
    store = mounted(work, program)
    try:
        yield work, store
    finally:
        store.close()


def main():
    scenes = {name: lambda stage, scene=scene: scene(*stage)
              for name, scene in {**globals(), **vars(touched_files)}.items() if name.startswith("scene_")}
    return run_scenes_of_a_store(scenes, prepare, "The store, row by row")


if __name__ == "__main__":
    sys.exit(main())
