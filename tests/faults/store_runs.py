# SPDX-License-Identifier: Apache-2.0
"""Runs of a program that writes one file, for the scenes of a store that misbehaves and of files that others touch."""

import sys
import textwrap

from scenes import ask, kept_node, launch, need, under_cairn

SIZE = 3 << 20


def pattern():
    return bytes((i * 7 + i // 253) & 0xFF for i in range(4096)) * (SIZE // 4096)


def start_run(work, store, program, options=(), flush="retry_ms: 200"):
    """`cairn run` of a Python program in the store, its standard error in a file."""
    script = work / "program.py"
    script.write_text("import errno, os, sys, time\n"
                      "block = bytes((i * 7 + i // 253) & 0xFF for i in range(4096))\n"
                      f"def write(fd): [os.write(fd, block) for _ in range({SIZE} // 4096)]\n"
                      "def told(call, *arguments):\n"
                      "    try: call(*arguments); return 'ok'\n"
                      "    except OSError as error: return errno.errorcode[error.errno]\n"
                      "def wait_for(name):\n"
                      f"    while not os.path.exists({str(work)!r} + '/' + name): time.sleep(0.02)\n"
                      + textwrap.dedent(program))
    command = under_cairn.cairn_command([sys.executable, script], store, options=options)
    # Retries soon, so that the scenes are quick; in other respects as it comes.
    configuration = work / "cairn.yaml"
    configuration.write_text(f"flush: {{{flush}}}\n")
    command[2:2] = ["--config", str(configuration)]
    return launch(command, work, store)


def finish_later(work, file):
    """The command that the message names stores what was left."""
    node = kept_node(work)
    drained = ask("drain", "--node", node)
    need(drained.status == 0, f"drain after the repair: {drained} {drained.errors[-800:]}")
    need(file.read_bytes() == pattern(), "what is stored differs")
