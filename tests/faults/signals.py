#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""SIGTERM and SIGINT to a run reach the program; then everything is drained. A second one ends at once.

    signals.py
"""

import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import under_cairn  # noqa: E402

SIZE = 8 << 20


def start(work, program):
    directory = work / "t"
    directory.mkdir()
    script = work / "program.py"
    script.write_text(textwrap.dedent(program))
    command = under_cairn.cairn_command([sys.executable, "-u", script], directory, ram="64M")
    process = subprocess.Popen(command, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env=under_cairn.clean_environment(), start_new_session=True)
    if process.stdout.readline() != "written\n":
        process.kill()
        raise RuntimeError(f"the program did not start: {process.stderr.read()[-800:]}")
    return process, directory


def forwarded(work, number):
    """The program dies of the signal, and what it wrote is stored."""
    process, directory = start(work, f"""
        import time
        with open('data', 'wb') as f: f.write(b'd' * {SIZE}); f.flush(); print('written'); time.sleep(60)
        """)
    process.send_signal(number)
    _, errors = process.communicate(timeout=30)
    status = process.returncode
    if status not in (128 + number, -number):
        return f"exit status {status} after {signal.Signals(number).name}: {errors[-500:]}"
    if (directory / "data").read_bytes() != b"d" * SIZE:
        return "what the program had written is not stored"
    return None


def handled(work):
    """A program with a handler ends as it likes; its status is the run's."""
    process, directory = start(work, """
        import signal, sys, time
        def stop(number, frame):
            open('handled', 'w').write('yes'); sys.exit(7)
        signal.signal(signal.SIGTERM, stop); print('written'); time.sleep(60)
        """)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=30)
    if process.returncode != 7:
        return f"exit status {process.returncode}: {errors[-500:]}"
    return None if (directory / "handled").read_text() == "yes" else "the handler's file is not stored"


def nothing_left(work):
    """After a run no process of it is left, and no directory of its node."""
    process, _ = start(work, "open('x', 'w').write('x'); print('written')")
    process.communicate(timeout=30)
    time.sleep(0.2)
    left = subprocess.run(["pgrep", "-f", f"node-service.*run-{process.pid}( |$)"], capture_output=True, text=True)
    return f"a node service is left: {left.stdout}" if left.stdout.strip() else None


def handler_writes(work):
    """A handler writes to the file that its thread is just writing to."""
    directory = work / "t"
    directory.mkdir()
    worker = under_cairn.BUILD / "tests/cairn_handler_worker"
    command = under_cairn.cairn_command([worker, directory / "log", 3], directory, ram="256M")
    outcome = under_cairn.execute(command, directory, 60)
    return None if outcome.status == 0 and not outcome.timed_out else f"{outcome}: {outcome.errors[-500:]}"


TESTS = {"terminate": lambda work: forwarded(work, signal.SIGTERM),
         "interrupt": lambda work: forwarded(work, signal.SIGINT), "handled": handled, "nothing_left": nothing_left,
         "handler_writes": handler_writes}


def main():
    if not under_cairn.have_cairn():
        print(f"skipped: {under_cairn.CAIRN} is not built")
        return under_cairn.SKIPPED
    failed = 0
    for name in sys.argv[1:] or TESTS:
        work = under_cairn.work_directory(f"signals-{name}")
        try:
            problem = TESTS[name](work)
        except (RuntimeError, subprocess.TimeoutExpired, OSError) as error:
            problem = str(error)
        print(f"FAILED {name}, kept {work}: {problem}" if problem else f"passed {name}", flush=True)
        failed += bool(problem)
        if not problem:
            under_cairn.remove(work)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
