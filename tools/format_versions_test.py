#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/formats.md says of the shared memory and of the client's messages the versions that the sources have."""

import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# The row of the table, its source, and the constant there.
FORMATS = (("control segment", "src/memory/tiers/memory_map.h", "kLayoutVersion"),
           ("client.sock", "src/frontends/protocol/protocol.h", "kVersion"))


class FormatVersions(unittest.TestCase):
    def setUp(self):
        self.text = (ROOT / "docs/formats.md").read_text(encoding="utf-8")

    def test_the_table_has_the_versions_of_the_sources(self):
        for name, source, constant in FORMATS:
            code = (ROOT / source).read_text(encoding="utf-8")
            [version] = re.findall(rf"^inline constexpr std::uint\d+_t {constant} = (\d+);", code, re.M)
            [written] = re.findall(rf"^\| \[{re.escape(name)}\]\(#[\w-]+\) \| [\w ]+ \| (\d+) \|", self.text, re.M)
            self.assertEqual(written, version, f"{name}: {source}")

    def test_each_message_has_its_row(self):
        code = (ROOT / FORMATS[1][1]).read_text(encoding="utf-8")
        listed = code[code.index("enum class Type"):]
        listed = re.sub(r"//.*", "", listed[:listed.index("};")])
        names = re.findall(r"\bk[A-Z]\w*", listed)
        rows = re.findall(r"^\| (\d+) \| `(k\w+)` \|", self.text, re.M)
        self.assertEqual(rows, [(str(at + 1), name) for at, name in enumerate(names)])


if __name__ == "__main__":
    unittest.main()
