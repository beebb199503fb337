#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of layer_check.py: each shows that a violating sample is caught."""

import unittest

import layer_check

TABLE = """
# cairn_module(in_a_comment DEPS nothing)
cairn_module(base NO_EXCEPTIONS)
cairn_module(arena DEPS base NO_EXCEPTIONS)
cairn_module(client DEPS arena NO_EXCEPTIONS)
cairn_module(frontends DEPS client SUBDIRS common NO_EXCEPTIONS)
cairn_module(node DEPS arena MAY_INCLUDE client/protocol.h
             LIBRARIES fmt::fmt)
"""


class LayerCheckTest(unittest.TestCase):
    def setUp(self):
        self.modules = layer_check.parse_modules(TABLE)

    def problems(self, path, *lines):
        return layer_check.check_file(path, "\n".join(lines), self.modules)

    def test_the_table_is_closed_over_its_dependencies(self):
        self.assertEqual(self.modules["client"].below, {"arena", "base"})
        self.assertNotIn("in_a_comment", self.modules)

    def test_a_dependency_that_is_not_declared_above_is_a_mistake(self):
        with self.assertRaises(ValueError):
            layer_check.parse_modules("cairn_module(base DEPS arena)\ncairn_module(arena)")

    def test_downwards_is_allowed(self):
        self.assertEqual(self.problems("src/client/a.cc", '#include "base/status.h"', '#include <vector>'), [])

    def test_upwards_is_caught_with_its_line(self):
        found = self.problems("src/base/a.cc", '#include "base/a.h"', '#include "arena/arena.h"')
        self.assertEqual(len(found), 1)
        self.assertTrue(found[0].startswith("src/base/a.cc:2: includes arena/arena.h"), found)

    def test_a_sibling_is_caught_but_for_the_named_header(self):
        self.assertEqual(self.problems("src/node/a.cc", '#include "client/protocol.h"'), [])
        self.assertEqual(len(self.problems("src/node/a.cc", '#include "client/attach.h"')), 1)

    def test_third_party_libraries_only_where_declared(self):
        self.assertEqual(self.problems("src/node/a.cc", "#include <fmt/format.h>"), [])
        self.assertEqual(len(self.problems("src/base/a.cc", "#include <fmt/format.h>")), 1)
        self.assertEqual(len(self.problems("src/base/a.cc", "#include <libxml/tree.h>")), 1)

    def test_streams_and_threads_are_kept_out_of_guests_but_not_out_of_tests(self):
        self.assertEqual(len(self.problems("src/base/a.h", "#include <iostream>", "#include <thread>")), 2)
        self.assertEqual(self.problems("src/base/a_test.cc", "#include <thread>"), [])
        self.assertEqual(self.problems("src/node/a.cc", "#include <thread>"), [])

    def test_test_doubles_stay_in_tests(self):
        self.assertEqual(len(self.problems("src/client/a.cc", '#include "arena/testing/fake.h"')), 1)
        self.assertEqual(self.problems("src/client/a_test.cc", '#include "arena/testing/fake.h"'), [])

    def test_includes_are_relative_to_src(self):
        self.assertEqual(len(self.problems("src/base/a.cc", '#include "status.h"')), 1)
        self.assertEqual(len(self.problems("src/base/a.cc", '#include "../arena/arena.h"')), 1)

    def test_common_stands_below_the_other_front_ends(self):
        self.assertEqual(len(self.problems("src/frontends/common/a.cc", '#include "frontends/posix/a.h"')), 1)
        self.assertEqual(self.problems("src/frontends/posix/a.cc", '#include "frontends/common/a.h"'), [])

    def test_an_undeclared_folder_is_caught(self):
        self.assertEqual(len(self.problems("src/utils/a.cc", "")), 1)

    def test_the_command_line_does_not_use_the_hooks(self):
        self.assertEqual(self.problems("cli/a.cc", '#include "cli/a.h"', '#include "node/a.h"'), [])
        self.assertEqual(len(self.problems("cli/a.cc", '#include "frontends/common/a.h"')), 1)


if __name__ == "__main__":
    unittest.main()
