# SPDX-License-Identifier: Apache-2.0
"""Turns transparent huge pages of shared memory on or off for a while; root only."""
import contextlib
import pathlib
import re

SETTING = pathlib.Path("/sys/kernel/mm/transparent_hugepage/shmem_enabled")


@contextlib.contextmanager
def setting(wanted: str):
    """wanted: "advise" or "never". The setting from before comes back at the end."""
    before = current()
    SETTING.write_text(wanted)
    try:
        yield
    finally:
        SETTING.write_text(before)


def current() -> str:
    return re.search(r"\[(\w+)\]", SETTING.read_text()).group(1)
