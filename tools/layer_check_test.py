#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of layer_check.py: each shows that a violating sample is caught."""

import unittest

import layer_check

TABLE = """
# cairn_module(memory/in_a_comment DEPS nothing)
cairn_module(base NO_EXCEPTIONS)
cairn_module(memory/arena NO_EXCEPTIONS)
cairn_module(memory/pool NO_EXCEPTIONS DEPS memory/arena)
cairn_module(policy/placement NO_EXCEPTIONS)
cairn_module(frontends/protocol DEPS memory/pool)
cairn_module(frontends/posix DEPS memory/pool HOOKS NO_EXCEPTIONS)
cairn_module(service/control DEPS memory/pool policy/placement frontends/protocol
             LIBRARIES fmt::fmt)
"""


class LayerCheckTest(unittest.TestCase):
    def setUp(self):
        self.modules = layer_check.parse_modules(TABLE)

    def problems(self, path, *lines):
        return layer_check.check_file(path, "\n".join(lines), self.modules)

    def test_the_table_is_closed_over_its_dependencies(self):
        self.assertEqual(self.modules["memory/pool"].below, {"memory/arena", "base"})
        self.assertNotIn("memory/in_a_comment", self.modules)

    def test_a_dependency_that_is_not_declared_above_is_a_mistake(self):
        with self.assertRaises(ValueError):
            layer_check.parse_modules("cairn_module(memory/a DEPS memory/b)\ncairn_module(memory/b)")

    def test_a_wing_stands_on_the_wings_below_it_alone(self):
        for name, dep in (("policy/b", "memory/a"), ("memory/b", "policy/a"), ("frontends/b", "service/a"),
                          ("service/b", "frontends/a"), ("frontends/b", "policy/a")):
            with self.assertRaises(ValueError):
                layer_check.parse_modules(f"cairn_module({dep})\ncairn_module({name} DEPS {dep})")
        with self.assertRaises(ValueError):
            layer_check.parse_modules("cairn_module(attic/a)")

    def test_downwards_is_allowed(self):
        self.assertEqual(self.problems("src/memory/pool/a.cc", '#include "memory/arena/a.h"', '#include "base/b.h"',
                                       '#include "memory/pool/b.h"', "#include <vector>"), [])

    def test_upwards_is_caught_with_its_line(self):
        found = self.problems("src/base/a.cc", '#include "base/a.h"', '#include "memory/arena/arena.h"')
        self.assertEqual(len(found), 1)
        self.assertTrue(found[0].startswith("src/base/a.cc:2: includes memory/arena/arena.h"), found)

    def test_what_lies_below_but_is_not_declared_is_for_tests_only(self):
        self.assertEqual(len(self.problems("src/service/control/a.cc", '#include "memory/arena/a.h"')), 1)
        self.assertEqual(self.problems("src/service/control/a_test.cc", '#include "memory/arena/a.h"'), [])
        self.assertEqual(len(self.problems("src/memory/arena/a_test.cc", '#include "memory/pool/a.h"')), 1)

    def test_a_dependency_that_no_file_needs_is_caught(self):
        texts = {"src/memory/pool/a.h": "", "src/memory/pool/a_test.cc": '#include "memory/arena/a.h"'}
        found = layer_check.superfluous(texts, self.modules)
        self.assertIn("cmake/modules.cmake: no file of memory/pool includes one of memory/arena", found)
        texts["src/memory/pool/a.h"] = '#include "memory/arena/a.h"'
        self.assertEqual(len(layer_check.superfluous(texts, self.modules)), len(found) - 1)

    def test_units_that_include_each_other_are_caught(self):
        texts = {"src/base/a.h": "", "src/base/a.cc": '#include "base/a.h"\n#include "base/b.h"',
                 "src/base/b.h": '#include "base/c.h"', "src/base/c.h": ""}
        self.assertEqual(layer_check.cycles(texts), [])
        texts["src/base/c.cc"] = '#include "base/c.h"\n#include "base/a.h"'
        self.assertEqual(layer_check.cycles(texts), [("base/a", "base/b", "base/c")])
        texts["src/base/d_test.cc"] = texts.pop("src/base/c.cc")
        self.assertEqual(layer_check.cycles(texts), [])

    def test_third_party_libraries_only_where_declared(self):
        self.assertEqual(self.problems("src/service/control/a.cc", "#include <fmt/format.h>"), [])
        self.assertEqual(len(self.problems("src/base/a.cc", "#include <fmt/format.h>")), 1)
        self.assertEqual(len(self.problems("src/base/a.cc", "#include <libxml/tree.h>")), 1)

    def test_streams_and_threads_are_kept_out_of_guests_but_not_out_of_tests(self):
        self.assertEqual(len(self.problems("src/base/a.h", "#include <iostream>", "#include <thread>")), 2)
        self.assertEqual(self.problems("src/base/a_test.cc", "#include <thread>"), [])
        self.assertEqual(self.problems("src/service/control/a.cc", "#include <thread>"), [])

    def test_test_doubles_stay_in_tests(self):
        double = '#include "memory/arena/testing/fake.h"'
        self.assertEqual(len(self.problems("src/memory/pool/a.cc", double)), 1)
        self.assertEqual(self.problems("src/memory/pool/a_test.cc", double), [])

    def test_includes_are_relative_to_src(self):
        self.assertEqual(len(self.problems("src/base/a.cc", '#include "status.h"')), 1)
        self.assertEqual(len(self.problems("src/base/a.cc", '#include "../memory/arena/arena.h"')), 1)

    def test_an_undeclared_folder_is_caught(self):
        self.assertEqual(len(self.problems("src/memory/utils/a.cc", "")), 1)

    def test_the_command_line_does_not_use_the_front_ends(self):
        self.assertEqual(self.problems("cli/node/a.cc", '#include "cli/node/b.h"', '#include "service/control/a.h"',
                                       '#include "cairn/a.h"'), [])
        self.assertEqual(len(self.problems("cli/node/a.cc", '#include "frontends/posix/a.h"')), 1)
        self.assertEqual(len(self.problems("cli/node/a.cc", '#include "a.h"')), 1)

    def test_rooms_of_the_command_line_point_downwards(self):
        self.assertEqual(self.problems("cli/launch/a.cc", '#include "cli/node/a.h"'), [])
        self.assertEqual(len(self.problems("cli/node/a.cc", '#include "cli/launch/a.h"')), 1)
        self.assertEqual(len(self.problems("cli/attic/a.cc", '#include "cli/node/a.h"')), 1)
        self.assertEqual(self.problems("cli/main.cc", '#include "cli/commands/a.h"'), [])


if __name__ == "__main__":
    unittest.main()
