#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cairn recover` and `cairn check` as a user types them, on the log of a node that died."""

import os
import shutil
import subprocess
import sys
import tempfile

BUILD = os.environ["CAIRN_BUILD"]


def cairn(*words):
    done = subprocess.run([f"{BUILD}/bin/cairn", *words], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def put(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def get(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def expect(condition, what):
    if not condition:
        raise AssertionError(what)


def main():
    root = tempfile.mkdtemp(prefix="cairn-durable-")
    tier, store = f"{root}/tier", f"{root}/store"
    os.mkdir(tier)
    os.makedirs(f"{store}/gone")
    for name in ("plain", "changed", "gone/file"):
        put(f"{store}/{name}", "0123456789")
    try:
        status, text = cairn("recover", tier)
        expect(status == 2 and "no durable tier" in text, text)
        subprocess.run([f"{BUILD}/tests/durable_write_log", tier, f"{store}/plain", "2", "ab", f"{store}/changed",
                        "0", "by the program", f"{store}/gone/file", "0", "x"], check=True)
        put(f"{store}/changed", "by somebody else")
        shutil.rmtree(f"{store}/gone")

        status, text = cairn("check", tier)
        expect(status == 0 and "records" in text, text)
        status, text = cairn("check")
        expect(status == 2 and "has no durable tier" in text, text)
        put(f"{root}/cairn.yaml", f"tiers: [{{directory: {tier}, capacity: 64M, durable: true}}]\n")
        status, text = cairn("check", "--config", f"{root}/cairn.yaml")
        expect(status == 0 and "records" in text, text)
        status, text = cairn("recover", "--dry-run", tier)
        expect("would recover" in text and get(f"{store}/plain") == "0123456789", text)
        expect(status == 74, text)

        os.rename(f"{tier}/cairn-durable/superblock", f"{root}/lost")
        status, text = cairn("recover", tier)
        expect(status == 2 and f"`cairn check --repair {tier}`" in text, text)
        status, text = cairn("check", tier)
        expect(status == 74 and "superblock is missing" in text, text)
        status, text = cairn("check", "--repair", tier)
        expect(status == 0 and "made again" in text, text)

        os.mkdir(f"{root}/empty")
        status, text = cairn("recover", f"{root}/empty", tier)
        expect(status == 74 and f"{root}/empty" in text, text)
        expect(get(f"{store}/plain") == "01ab456789", text)
        expect(get(f"{store}/changed") == "by somebody else", text)
        expect(get(f"{store}/changed.cairn-recovered") == "by the program", text)
        expect(os.path.exists(f"{tier}/cairn-rescued/list.tsv") and "has no place" in text, text)

        status, text = cairn("recover", "--config", f"{root}/cairn.yaml")
        expect(status == 0 and "stored already" in text, text)
        status, text = cairn("recover", f"{root}/empty", tier)
        expect(status == 2 and "stored already" in text, text)
    finally:
        shutil.rmtree(root)
    print("recover and check do what they say")


if __name__ == "__main__":
    sys.exit(main())
