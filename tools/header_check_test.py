#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of header_check.py: a header that leans on another's includes is caught."""

import os
import tempfile
import unittest

import header_check


class HeaderCheckTest(unittest.TestCase):
    def complaint(self, text):
        with tempfile.TemporaryDirectory() as root:
            os.makedirs(os.path.join(root, "src/base"))
            with open(os.path.join(root, "src/base/sample.h"), "w", encoding="utf-8") as file:
                file.write(text)
            self.assertEqual(header_check.headers(root), ["src/base/sample.h"])
            return header_check.compile_alone("src/base/sample.h", root)

    def test_a_complete_header_passes(self):
        self.assertEqual(self.complaint("#pragma once\n#include <cstdint>\nstruct A { std::int8_t a; };\n"), "")

    def test_a_missing_include_is_caught(self):
        self.assertIn("string", self.complaint("#pragma once\nstd::string name();\n"))

    def test_a_missing_include_guard_is_caught(self):
        self.assertIn("redefinition", self.complaint("struct A {};\n"))

    def test_structures_that_c_does_not_see_are_caught(self):
        guarded = '#pragma once\n#ifdef __cplusplus\nextern "C" {\n%sstruct A {\n  int a;\n};\n%s'
        end = "#ifdef __cplusplus\n}\n#endif\n"
        with tempfile.TemporaryDirectory() as root:
            os.makedirs(os.path.join(root, "include/cairn"))
            texts = {"good.h": guarded % ("#endif\n", end), "bad.h": guarded % ("", end + "#endif\n")}
            for name, text in texts.items():
                with open(os.path.join(root, "include/cairn", name), "w", encoding="utf-8") as file:
                    file.write(text)
                self.assertTrue(header_check.is_for_c("include/cairn/" + name, root))
                self.assertEqual(header_check.compile_alone("include/cairn/" + name, root), "")
            self.assertEqual(header_check.compile_as_c("include/cairn/good.h", root), "")
            self.assertIn("incomplete", header_check.compile_as_c("include/cairn/bad.h", root))

    def test_what_its_source_includes_first_is_left_to_the_compiler(self):
        with tempfile.TemporaryDirectory() as root:
            os.makedirs(os.path.join(root, "src/base"))
            for name, text in {"first.h": "", "first.cc": '// One.\n#include "base/first.h"\n#include <string>\n',
                               "second.h": "", "second.cc": '#include <string>\n#include "base/second.h"\n'}.items():
                with open(os.path.join(root, "src/base", name), "w", encoding="utf-8") as file:
                    file.write(text)
            self.assertEqual(header_check.headers(root), ["src/base/second.h"])


if __name__ == "__main__":
    unittest.main()
