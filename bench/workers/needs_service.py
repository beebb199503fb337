# SPDX-License-Identifier: Apache-2.0
"""Makes, writes and syncs small files for a while, each of which the service has to know; prints the longest wait.

    needs_service.py DIRECTORY --seconds 6
"""
import argparse
import json
import os
import time


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory")
    parser.add_argument("--seconds", type=float, default=6)
    arguments = parser.parse_args()
    end = time.monotonic() + arguments.seconds
    longest, count = 0.0, 0
    while (began := time.monotonic()) < end:
        path = os.path.join(arguments.directory, f"small{count % 100}")
        content = b"%d" % count * 100
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
        os.write(file, content)
        os.fsync(file)
        if os.pread(file, len(content), 0) != content:
            raise SystemExit(f"wrong bytes in {path}")
        os.close(file)
        longest = max(longest, time.monotonic() - began)
        count += 1
    print(json.dumps({"longest": longest, "count": count}))


main()
