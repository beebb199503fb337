#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges every #include of src/, cli/ and include/ by the module table in cmake/modules.cmake.

A module includes only itself and what stands below it; code that ends up inside other people's programs
uses no third-party library and none of the standard library's streams, threads or locks; test doubles stay
in tests.
"""

import os
import re
import sys

import sources

INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', re.MULTILINE)
THIRD_PARTY = ("fmt/", "spdlog/", "yaml-cpp/", "nlohmann/", "CLI/", "liburing", "libxml/")
# What would start threads, pull in locales or initialise streams inside a guest.
NOT_IN_GUESTS = ("iostream", "fstream", "sstream", "iomanip", "regex", "filesystem", "thread", "future",
                 "mutex", "shared_mutex", "condition_variable", "locale")
KEYWORDS = ("DEPS", "MAY_INCLUDE", "LIBRARIES", "SUBDIRS", "NO_EXCEPTIONS")


class Module:
    """One row of the table."""

    def __init__(self, name):
        self.name = name
        self.deps = []
        self.may_include = []
        self.libraries = []
        self.is_guest = False
        self.below = set()


def parse_modules(text):
    """The table as {name: Module}, with the closure of the dependencies. Raises ValueError if it has a mistake."""
    text = re.sub(r"#.*", "", text)
    modules = {}
    for call in re.findall(r"\bcairn_module\(([^)]*)\)", text):
        words = call.split()
        module = Module(words[0])
        keyword = None
        for word in words[1:]:
            if word in KEYWORDS:
                keyword = word
                module.is_guest |= word == "NO_EXCEPTIONS"
            elif keyword == "DEPS":
                module.deps.append(word)
            elif keyword == "MAY_INCLUDE":
                module.may_include.append(word)
            elif keyword == "LIBRARIES":
                module.libraries.append(word)
        for dep in module.deps:
            if dep not in modules:
                raise ValueError(f"module {module.name} stands on {dep}, which is not declared above it")
            module.below |= {dep} | modules[dep].below
        modules[module.name] = module
    return modules


def problem_of_include(path, quote, included, module, modules):
    """What is wrong with one #include of a file of `module`, or None. `module` is None outside of src/."""
    is_test = sources.is_test_code(path)
    if quote == "<":
        if module is None or is_test:
            return None
        if included.startswith(THIRD_PARTY) and not module.libraries:
            return f"module {module.name} declares no third-party libraries"
        if module.is_guest and included in NOT_IN_GUESTS:
            return "this code runs inside other people's programs: no streams, threads or standard locks"
        return None
    target = included.split("/")[0]
    if "/testing/" in included and not is_test:
        return "test doubles are for tests only"
    if path.startswith("cli/"):
        return None if target in ("cli", "cairn") or (target in modules and target != "frontends") else (
            "the command line may include cli/ and modules other than the front ends")
    if target == "cairn":
        return None
    if target not in modules:
        return "write includes as \"module/file.h\", relative to src/"
    if module is None:
        return "include/cairn/ may include only itself"
    if path.startswith("src/frontends/common/") and included.startswith("frontends/"):
        if not included.startswith("frontends/common/"):
            return "frontends/common stands below the front ends"
    if target == module.name or target in module.below or included in module.may_include:
        return None
    return f"{target} does not stand below {module.name}"


def check_file(path, text, modules):
    module = None
    if path.startswith("src/"):
        folder = path.split("/")[1]
        if folder not in modules:
            return [f"{path}: folder src/{folder} is not declared in cmake/modules.cmake"]
        module = modules[folder]
    problems = []
    for match in INCLUDE.finditer(text):
        problem = problem_of_include(path, match.group(1), match.group(2), module, modules)
        if problem:
            line = text.count("\n", 0, match.start(2)) + 1
            problems.append(f"{path}:{line}: includes {match.group(2)}: {problem}")
    return problems


def check_tree(root=sources.ROOT):
    modules = parse_modules(sources.read(os.path.join("cmake", "modules.cmake"), root))
    problems = []
    for path in sources.all_files(root):
        if sources.is_cpp(path) and path.startswith(("src/", "cli/", "include/")):
            problems += check_file(path, sources.read(path, root), modules)
    return problems


def main():
    problems = check_tree()
    print("\n".join(problems) if problems else "layers: every include points downwards")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
