#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of style_check.py: each shows that a violating sample is caught and its lawful neighbour is not."""

import os
import tempfile
import unittest

import style_check

HEAD = "// " + style_check.SPDX + "\n"


def body(lines):
    return "  work();\n" * lines


class FunctionsTest(unittest.TestCase):
    def lengths(self, text):
        return {name: lines for name, _, lines in style_check.functions(text)}

    def test_free_functions_methods_and_tests_are_measured(self):
        text = ("namespace cairn {\nnamespace {\nint free_one(int a) {\n" + body(3) + "}\n}\n"
                "class A : public B {\n public:\n  A() : a_{1}, b_(2) {}\n  void method() const {\n" + body(1) +
                "  }\n  int a_{3};\n};\nvoid A::far(int b)\n{\n}\nTEST(Area, Name) {\n" + body(2) + "}\n}\n")
        found = self.lengths(text)
        self.assertEqual(found["free_one"], 5)
        self.assertEqual(found["method"], 3)
        self.assertEqual(found["A::far"], 3)
        self.assertEqual(found["Area.Name"], 4)

    def test_braces_in_literals_comments_and_macros_do_not_count(self):
        text = 'void f() {\n  g("}{", \'{\');  // }\n  /* } */\n}\n#define M(a) \\\n  {\nvoid h() {\n}\n'
        self.assertEqual(self.lengths(text), {"f": 4, "h": 2})

    def test_tables_and_types_are_not_functions(self):
        self.assertEqual(self.lengths("const Row kRows[] = {\n{1},\n{2},\n};\nenum class E { kA };\n"), {})
        self.assertEqual(self.lengths("struct alignas(64) Word {\n  int a;\n};\n"), {})

    def test_blocks_and_lambdas_belong_to_the_outer_function(self):
        text = "void f() {\n  if (a) {\n  }\n  auto g = [](int b) {\n    return b;\n  };\n}\n"
        self.assertEqual(self.lengths(text), {"f": 7})


class RulesTest(unittest.TestCase):
    def cpp(self, text, path="src/base/a.cc", budget=None):
        return style_check.check_cpp(path, text, budget or {}, set())

    def test_a_long_function_is_caught_unless_budgeted(self):
        long_one = "void f() {\n" + body(80) + "}\n"
        self.assertEqual(len(self.cpp(long_one)), 1)
        self.assertEqual(self.cpp(long_one, budget={("src/base/a.cc", "f"): 82}), [])
        self.assertEqual(len(self.cpp(long_one, budget={("src/base/a.cc", "f"): 81})), 1)

    def test_commented_out_code_is_caught_and_prose_is_not(self):
        for line in ("// return 3;", "  // count = 4;", "// pool.release(block);", "// if (a > 2) {", "//}",
                     "// #include <vector>"):
            self.assertEqual(len(self.cpp(line + "\n")), 1, line)
        for line in ("// Returns the count; the caller owns it.", "//   pool.release(block);",
                     "// see base/status.h", "// x = y, so that it holds", "// for (the reason above)."):
            self.assertEqual(self.cpp(line + "\n"), [], line)

    def test_headers_need_pragma_once_and_good_names(self):
        self.assertEqual(len(self.cpp("int a;\n", "src/base/a.h")), 1)
        self.assertEqual(len(self.cpp("#pragma once\n", "src/base/utils.h")), 1)
        self.assertEqual(len(self.cpp("", "src/base/BadName.cc")), 1)

    def test_columns_licence_leftovers_and_trailing_space_are_caught(self):
        self.assertEqual(style_check.check_text("a.cc", HEAD + "x" * 100 + "\n"), [])
        self.assertEqual(len(style_check.check_text("a.cc", HEAD + "x" * 101 + "\n")), 1)
        self.assertEqual(len(style_check.check_text("a.cc", "int a;\n")), 1)
        self.assertEqual(len(style_check.check_text("a.cc", HEAD + "// TO" "DO later\n")), 1)
        self.assertEqual(len(style_check.check_text("a.cc", HEAD + "int a; \n")), 1)


class TreeTest(unittest.TestCase):
    def test_a_long_file_and_a_needless_budget_are_caught(self):
        with tempfile.TemporaryDirectory() as root:
            os.makedirs(os.path.join(root, "tools"))
            os.makedirs(os.path.join(root, "src/base"))
            with open(os.path.join(root, "src/base/a.cc"), "w", encoding="utf-8") as file:
                file.write(HEAD + "int a;\n" * 800)
            with open(os.path.join(root, style_check.BUDGET), "w", encoding="utf-8") as file:
                file.write("src/base/gone.cc - 900  # was long\n")
            problems = style_check.check_tree(root)
        self.assertEqual(len(problems), 2, problems)
        self.assertIn("801 lines", problems[0])
        self.assertIn("remove the entry", problems[1])


if __name__ == "__main__":
    unittest.main()
