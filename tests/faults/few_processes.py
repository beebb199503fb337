#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program takes all processes that its user may have: the service gets no thread for a connection of a command. The
command hears of it, the node goes on, and what is dirty is stored.

    few_processes.py

The limit is not root's: the node runs as another account.
"""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import under_cairn  # noqa: E402

LONG_SECONDS = 100
USER = 64123  # that nobody has
PROCESSES = 60

PROGRAM = textwrap.dedent("""
    import os, signal, socket, sys
    open('closed', 'wb').write(b'C' * 3000000)
    children = []
    try:
        while True:
            child = os.fork()
            if child == 0:
                signal.pause()
            children.append(child)
    except OSError:
        pass
    def ask():
        node = socket.socket(socket.AF_UNIX)
        node.settimeout(20)
        node.connect(sys.argv[1])
        try:
            node.sendall(b'{"command":"status"}\\n')
        except BrokenPipeError:
            pass
        return node.recv(4096).decode()
    try:
        refused = ask()
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    assert 'gets no thread' in refused, refused
    assert '"done"' in ask()
    """)


def main():
    if not under_cairn.have_cairn() or os.geteuid() != 0:
        print("skipped: cairn is not built, or this is not root, who may become another account")
        return under_cairn.SKIPPED
    work = under_cairn.work_directory("few-processes")
    environment = under_cairn.clean_environment({"CAIRN_RUN_ROOT": str(work / "run"), "HOME": str(work),
                                                 "XDG_STATE_HOME": str(work / "state")})
    work.chmod(0o755)
    for name in ("run", "state", "t"):
        (work / name).mkdir(mode=0o700)
        os.chown(work / name, USER, USER)
    prefix = ["prlimit", f"--nproc={PROCESSES}", "setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups",
              under_cairn.CAIRN]

    def cairn(*words):
        return subprocess.run(prefix + list(words), cwd=work / "t", env=environment, text=True, capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=LONG_SECONDS, check=False)

    try:
        begun = cairn("up", "--name", "n", "--ram", "32M", "--trigger", "on-exit", "--buffer", work / "t")
        assert begun.returncode == 0, begun.stderr
        ran = cairn("run", "--node", "n", "--", "python3", "-c", PROGRAM, str(work / "run/n/control.sock"))
        assert ran.returncode == 0, f"{ran}: {(work / 'run/n/node.log').read_text()[-1500:]}"
        assert "killed" not in (work / "run/n/node.log").read_text(), "the service has died"
        assert (work / "t/closed").read_bytes() == b"C" * 3000000, "what was closed is not stored"
    except AssertionError as problem:
        print(f"FAILED, kept {work}: {problem}")
        return 1
    finally:
        cairn("down", "--node", "n")
    under_cairn.remove(work)
    print("passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
