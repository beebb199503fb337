#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of style_check.py: each shows that a violating sample is caught and its lawful neighbour is not."""

import os
import tempfile
import unittest

import english
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

    def test_too_many_parameters_are_caught(self):
        head = "int sum(int a, std::pair<int, int> b, int (*c)(int, int), int d, int e%s) {\n}\n"
        for more, count in (("", 5), (", int f", 6)):
            self.assertEqual(style_check.functions(head % more), [("sum", count, 2)])
        self.assertEqual(style_check.functions("int none() {\n}\n"), [("none", 0, 2)])
        hook = "CAIRN_HOOK(int, clone, (int a, int b, int c, int d, int e, int f)) {\n}\n"
        self.assertEqual(style_check.functions(hook)[0][1], 0)
        budget = {("a.cc", "sum()"): 6}
        self.assertEqual(style_check.check_parameters("a.cc", "sum", 6, budget, set()), [])
        self.assertEqual(len(style_check.check_parameters("a.cc", "sum", 7, budget, set())), 1)
        self.assertEqual(len(style_check.check_parameters("b.cc", "sum", 6, budget, set())), 1)
        self.assertEqual(style_check.check_parameters(style_check.SYSTEM_CALL_WRAPPERS, "call", 7, {}, set()), [])

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


class EnglishTest(unittest.TestCase):
    def words(self, text, path="src/base/a.h"):
        return [words for _, words in english.findings(path, text)]

    def test_sentences_that_begin_with_a_relative_clause_are_caught(self):
        for sentence in ("Who holds the locks of other blocks has none.", "Whom what it takes is counted for.",
                         "Whoever places a block asks for that.", "Whose room a block takes.",
                         "What is read in order is sampled.", "What was valid stays so.",
                         "Of a hundred events these pass.", "Of what is left, half."):
            self.assertEqual(len(self.words(f"// {sentence}\n")), 1, sentence)
            self.assertEqual(len(self.words(f"// One fact. {sentence}\n")), 1, sentence)
            self.assertEqual(len(self.words(f"One fact. {sentence}\n", "docs/a.md")), 1, sentence)

    def test_passives_without_an_actor_are_caught(self):
        for part in ("the expert is told every reference", "all of them are asked", "it is not asked again",
                     "the run for whom it waits", "it waits for whoever holds it", "it waits; who writes goes on"):
            self.assertEqual(len(self.words(f"int a;  // Here {part}.\n")), 1, part)
            self.assertEqual(len(self.words(f"# Here {part}.\n", "tools/a.py")), 1, part)

    def test_a_sentence_is_followed_across_lines(self):
        text = "// The service sends\n// a batch that is\n// told to nobody. Who\n// knows.\n"
        self.assertEqual([line for line, _ in english.findings("a.cc", text)], [2, 3])

    def test_lawful_neighbours_pass(self):
        for text in ("// Of course the caller waits.\n", "// Says who holds the lock, and what is dirty.\n",
                     "// A client that asks gets an answer, whoever sent it.\n", "// Two runs that are told apart.\n",
                     "// Who holds the lock? The owner's slot says it.\n", "// What does it cost? A lookup.\n",
                     'f("Who is told");\n', "// Keeps what\nint whom();\n", "// Whole blocks, whatever their size.\n"):
            self.assertEqual(self.words(text), [], text)

    def test_headings_code_and_other_strings_of_documents_and_scripts_pass(self):
        self.assertEqual(self.words("## Who it is not for\n```\nWhat is here\n```\n", "README.md"), [])
        self.assertEqual(self.words('a = "Who is told"\nb = f(x)  # the count\n', "a.py"), [])
        self.assertEqual(len(self.words('def f():\n    """Who is here."""\n', "a.py")), 1)
        self.assertEqual(len(self.words("| x | What is here |\n| what | y |\n- Whoever reads\n", "a.md")), 2)

    def test_the_budget_is_a_ratchet(self):
        found = {"a.cc": [(1, "Who is"), (2, "Whom")], "b.cc": [(3, "Of a")]}
        self.assertEqual(style_check.check_english(found, {"a.cc": 2, "b.cc": 1}), [])
        self.assertEqual(len(style_check.check_english(found, {"a.cc": 2})), 2)
        self.assertIn("lower the entry", style_check.check_english(found, {"a.cc": 3, "b.cc": 1})[0])
        self.assertIn("gone.cc has 0", style_check.check_english(found, {"a.cc": 2, "b.cc": 1, "gone.cc": 1})[0])

    def tree(self, root, budget, **files):
        """A tree of comment files: the number of findings in NAME.cc, by name."""
        os.makedirs(os.path.join(root, "tools"))
        for name, count in files.items():
            with open(os.path.join(root, f"{name}.cc"), "w", encoding="utf-8") as file:
                file.write("// Whoever reads.\n\n" * count)
        with open(os.path.join(root, style_check.ENGLISH_BUDGET), "w", encoding="utf-8") as file:
            file.write("# why\n" + budget)

    def budget(self, root):
        with open(os.path.join(root, style_check.ENGLISH_BUDGET), encoding="utf-8") as file:
            return file.read()

    def test_lowering_never_raises(self):
        with tempfile.TemporaryDirectory() as root:
            self.tree(root, "a.cc 5\nb.cc 1\ngone.cc 2\n", a=2, b=2)
            style_check.lower_english_budget(root)
            self.assertEqual(self.budget(root), "# why\na.cc 2\nb.cc 1\n")

    def test_an_entry_moves_with_its_file_and_does_not_grow(self):
        with tempfile.TemporaryDirectory() as root:
            self.tree(root, "a.cc 1\nold.cc 4\n", a=1, one=2, other=1)
            self.assertTrue(style_check.move_english_budget("old.cc", ["one.cc", "other.cc"], root))
            self.assertEqual(self.budget(root), "# why\na.cc 1\none.cc 2\nother.cc 1\n")
        with tempfile.TemporaryDirectory() as root:
            self.tree(root, "old.cc 2\n", one=2, other=1)
            self.assertFalse(style_check.move_english_budget("old.cc", ["one.cc", "other.cc"], root))
            self.assertEqual(self.budget(root), "# why\nold.cc 2\n")


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
