# SPDX-License-Identifier: Apache-2.0
"""A device's own sequential write rate, by fio, in the same run as what is compared with it."""
import json
import shutil

from .errors import Skip

# At least three seconds' worth at the disk's rate: the throttle's credit for its first slice is then noise.
SIZE_MEGABYTES = 512


def sequential_write(bench, directory) -> float:
    """Bytes per second, everything on the device before the clock stops."""
    if not shutil.which("fio"):
        raise Skip("needs fio (apt-get install fio)")
    file = directory / "rate"
    text = bench.output(["fio", "--name=rate", f"--filename={file}", "--rw=write", "--bs=1m",
                         f"--size={SIZE_MEGABYTES}m", "--ioengine=psync", "--end_fsync=1", "--thread",
                         "--output-format=json"])
    file.unlink()
    return json.loads(text[text.index("{"):])["jobs"][0]["write"]["bw_bytes"]
