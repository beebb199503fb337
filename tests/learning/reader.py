# SPDX-License-Identifier: Apache-2.0
"""The puppet of the suite of buffering modes, which can also advise the kernel of how it will read. Run as a script."""

import ctypes
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "modes"))
import puppet  # noqa: E402

plain_act = puppet.act


def readahead(file, offset, length):
    function = ctypes.CDLL(None, use_errno=True).readahead
    function.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_size_t]
    function.restype = ctypes.c_ssize_t
    if function(file, offset, length) != 0:
        raise OSError(ctypes.get_errno(), "readahead")
    return 0


def act(name, arguments):
    functions = {"posix_fadvise": os.posix_fadvise, "readahead": readahead}
    return functions[name](*arguments) if name in functions else plain_act(name, arguments)


if __name__ == "__main__":
    puppet.act = act
    puppet.perform()
