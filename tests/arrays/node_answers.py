# SPDX-License-Identifier: Apache-2.0
"""What a node answers to a request of its control socket, asked without a command of Cairn."""

import json
import socket
from pathlib import Path


def answer_of_node(run_root, request):
    """`run_root`: the directory of the only node (CAIRN_RUN_ROOT)."""
    path = next(Path(run_root).rglob("control.sock"))
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(str(path))
        connection.sendall(json.dumps(request).encode() + b"\n")
        return json.loads(connection.makefile().readline())
