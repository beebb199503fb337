#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of assertion_check.py."""

import unittest

import assertion_check

BODY = "int value;\n"


def room(path, assertions, lines=1000):
    return {path: "CAIRN_DCHECK(value);\n" * assertions + BODY * (lines - assertions)}


class AssertionCheckTest(unittest.TestCase):
    def problems(self, texts, budget=""):
        return assertion_check.problems_of(assertion_check.densities(texts), assertion_check.parse_budget(budget))

    def test_a_room_with_too_few_is_caught(self):
        self.assertEqual(len(self.problems(room("src/service/node/a.cc", 4))), 1)
        self.assertEqual(self.problems(room("src/service/node/a.cc", 5)), [])

    def test_rooms_on_shared_memory_need_more(self):
        self.assertEqual(len(self.problems(room("src/memory/pool/a.cc", 9))), 1)
        self.assertEqual(self.problems(room("src/memory/pool/a.cc", 10)), [])

    def test_all_files_of_a_room_count_together_without_its_tests(self):
        texts = room("src/memory/pool/a.cc", 0, 500) | room("src/memory/pool/a.h", 10, 500)
        self.assertEqual(self.problems(texts), [])
        texts |= room("src/memory/pool/a_test.cc", 0, 9000)
        self.assertEqual(self.problems(texts), [])

    def test_the_budget_is_a_ratchet(self):
        budget = "service/node 3.0  # so far"
        self.assertEqual(self.problems(room("src/service/node/a.cc", 3), budget), [])
        self.assertEqual(len(self.problems(room("src/service/node/a.cc", 2), budget)), 1)
        self.assertEqual(len(self.problems(room("src/service/node/a.cc", 7), budget)), 1)

    def test_the_written_budget_is_kept(self):
        texts = room("src/service/node/a.cc", 3) | room("src/memory/pool/a.cc", 20)
        budget = assertion_check.budget_text(assertion_check.densities(texts))
        self.assertEqual(self.problems(texts, budget), [])
        self.assertNotIn("memory/pool", budget)


if __name__ == "__main__":
    unittest.main()
