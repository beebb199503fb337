#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of preload_check.py on samples of readelf's and nm's output."""

import unittest

import preload_check

NEEDED = " 0x0000000000000001 (NEEDED)             Shared library: [{}]\n"


class PreloadCheckTest(unittest.TestCase):
    def test_libc_and_the_dynamic_linker_are_enough(self):
        section = NEEDED.format("libc.so.6") + NEEDED.format("ld-linux-x86-64.so.2")
        self.assertEqual(preload_check.needed_problems(section), [])

    def test_a_dependency_on_libstdcxx_is_caught(self):
        self.assertEqual(len(preload_check.needed_problems(NEEDED.format("libstdc++.so.6"))), 1)

    def test_text_relocations_are_caught(self):
        self.assertEqual(len(preload_check.needed_problems(" 0x0000000000000016 (TEXTREL)  0x0\n")), 1)

    def test_an_exported_cxx_symbol_is_caught(self):
        symbols = "0000000000004c90 T open\n0000000000004d00 W _ZNSt6vectorIiE5beginEv\n"
        self.assertEqual(len(preload_check.export_problems(symbols)), 1)
        self.assertEqual(preload_check.export_problems("0000000000004c90 T open@@CAIRN\n"), [])


if __name__ == "__main__":
    unittest.main()
