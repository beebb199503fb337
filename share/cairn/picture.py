# SPDX-License-Identifier: Apache-2.0
"""What the programs that draw for `cairn` share: input from stdin, the picture's path as the one argument, and one
line on stderr that says why there is no picture."""

import os
import sys


class BadInput(Exception):
    """The input cannot be drawn; the text says what is wrong."""


def main(name, usage, draw):
    """Calls draw(the input's bytes, the picture's path), which may raise BadInput, ImportError or OSError.
    Returns the exit status."""
    arguments = sys.argv[1:]
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print(usage.strip(), file=sys.stderr)
        return 2
    try:
        draw(sys.stdin.buffer.read(), arguments[0])
    except BadInput as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    except ImportError as error:
        print(f"{name}: {error.name or 'matplotlib'} is missing: install python3-matplotlib "
              "(apt-get install python3-matplotlib, or pip install matplotlib)", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"{name}: {arguments[0]}: {os.strerror(error.errno) if error.errno else error}", file=sys.stderr)
        return 1
    return 0
