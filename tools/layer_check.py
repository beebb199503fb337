#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges every #include of src/, cli/ and include/ by the module table in cmake/modules.cmake.

A module is a room of src/ and includes itself, base, and what the table says. What the table says and no file needs is
an error, too, so it tells the truth. A wing stands only on the wings below it, and a room of cli/ on the rooms of cli/
below it. No two files include each other, by whatever way round. Code that ends up inside other people's programs uses
no third-party library and none of the standard library's streams, threads or locks; test doubles stay in tests, which
may include all that lies below.
"""

import os
import re
import sys

import sources

INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', re.MULTILINE)
THIRD_PARTY = ("fmt/", "spdlog/", "yaml-cpp/", "nlohmann/", "CLI/", "liburing", "libxml/", "hdf5", "H5", "Eigen/",
               "boost/", "raft.h")
# What would start threads, pull in locales or initialise streams inside a guest.
NOT_IN_GUESTS = ("iostream", "fstream", "sstream", "iomanip", "regex", "filesystem", "thread", "future",
                 "mutex", "shared_mutex", "condition_variable", "locale")
KEYWORDS = ("DEPS", "LIBRARIES", "NEEDS", "NO_EXCEPTIONS", "HOOKS")
# Which wings, or single rooms, each wing may stand on, besides itself and base.
WINGS = {"base": (), "memory": (), "policy": (), "cluster": (), "frontends": ("memory", "policy/arrays"),
         "service": ("memory", "policy", "cluster", "frontends/protocol")}
# The wing that no other code includes, because it is the hooks of the preload library.
NOT_FOR_THE_COMMAND_LINE = "frontends"
# The rooms of cli/, each with the rooms that it may stand on; main.cc and commands.cc, which are in no room, include
# all. What stands in the first four is in bin/cairn, all else in lib/cairn/commands.so alone (cmake/cli.cmake).
CLI_ROOMS = {"terminal": (), "node": ("terminal",), "launch": ("terminal", "node"),
             "run": ("terminal", "node", "launch"), "arguments": ("terminal",),
             "configuration": ("terminal", "arguments", "node"),
             "profile": ("terminal", "configuration"), "trace": ("terminal", "arguments", "node", "launch"),
             "top": ("terminal", "arguments", "node"),
             "report": ("terminal", "arguments", "node"),
             "advice": ("terminal", "arguments", "configuration", "trace"),
             "commands": ("terminal", "node", "launch", "run", "arguments", "configuration", "profile", "trace", "top",
                           "advice", "report")}


class Module:
    """One row of the table."""

    def __init__(self, name):
        self.name = name
        self.wing = name.split("/")[0]
        self.deps = []
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
            elif keyword == "LIBRARIES":
                module.libraries.append(word)
        stand_on(module, modules)
        modules[module.name] = module
    return modules


def stand_on(module, modules):
    """Fills in what lies below a module; raises ValueError where that may not be."""
    if module.wing not in WINGS:
        raise ValueError(f"module {module.name} is in no wing of layer_check.py")
    for dep in module.deps:
        if dep not in modules:
            raise ValueError(f"module {module.name} stands on {dep}, which is not declared above it")
        wing = dep.split("/")[0]
        if wing != module.wing and wing not in WINGS[module.wing] and dep not in WINGS[module.wing]:
            raise ValueError(f"module {module.name} stands on {dep}, but the wing {module.wing} not on {wing}")
    for dep in module.deps + ["base"]:
        if dep in modules:
            module.below |= {dep} | modules[dep].below


def module_of(path, modules):
    """The name of the module that a path below src/ lies in, or None."""
    parts = path.split("/")
    return next((name for name in (parts[0], "/".join(parts[:2])) if name in modules), None)


def problem_of_foreign(included, module, is_test):
    """The error in an #include of a header that is not ours, or None. `module` is None outside of src/."""
    if module is None or is_test:
        return None
    if included.startswith(THIRD_PARTY) and not module.libraries:
        return f"module {module.name} declares no third-party libraries"
    if module.is_guest and included in NOT_IN_GUESTS:
        return "this code runs inside other people's programs: no streams, threads or standard locks"
    return None


def problem_of_include(path, included, module, modules):
    """The error in one #include of a header of ours, or None. `module` is None outside of src/."""
    is_test = sources.is_test_code(path)
    target = module_of(included, modules)
    if "/testing/" in included and not is_test:
        return "test doubles are for tests only"
    if path.startswith("cli/"):
        return problem_of_cli(path, included, modules[target].wing if target else None)
    if included.startswith("cairn/"):
        return None
    if target is None:
        return "write includes as \"wing/room/file.h\", relative to src/"
    if module is None:
        return "include/cairn/ may include only itself"
    if target in (module.name, "base") or target in (module.below if is_test else module.deps):
        return None
    return f"{target} is none of the DEPS of {module.name}"


def problem_of_cli(path, included, wing):
    """The same for a file of the command line; `wing` holds the included header, or is None outside of src/."""
    if included.startswith("cairn/") or wing not in (None, NOT_FOR_THE_COMMAND_LINE):
        return None
    if not included.startswith("cli/"):
        return "the command line may include cli/ and modules other than the front ends"
    room, other = (name.split("/")[1] for name in (path, included))
    if "/" not in path[len("cli/"):] or other == room:
        return None
    if room not in CLI_ROOMS or other not in CLI_ROOMS:
        return "only rooms that CLI_ROOMS of layer_check.py names are in cli/"
    return None if other in CLI_ROOMS[room] else f"cli/{room} does not stand on cli/{other}"


def includes_of(text):
    """(line, quote, included) of each #include of a file."""
    return [(text.count("\n", 0, match.start(2)) + 1, match.group(1), match.group(2))
            for match in INCLUDE.finditer(text)]


def check_file(path, text, modules):
    module = None
    if path.startswith("src/"):
        name = module_of(path[len("src/"):], modules)
        if name is None:
            return [f"{path}: no module of cmake/modules.cmake has this folder"]
        module = modules[name]
    problems = []
    for line, quote, included in includes_of(text):
        problem = (problem_of_foreign(included, module, sources.is_test_code(path)) if quote == "<"
                   else problem_of_include(path, included, module, modules))
        if problem:
            problems.append(f"{path}:{line}: includes {included}: {problem}")
    return problems


def superfluous(texts, modules):
    """Dependencies that the table names and no file needs. `texts` is {path: text}."""
    needed = {name: set() for name in modules}
    for path, text in texts.items():
        name = module_of(path[len("src/"):], modules) if path.startswith("src/") else None
        if name and not sources.is_test_code(path):
            needed[name] |= {module_of(included, modules) for _, quote, included in includes_of(text) if quote == '"'}
    return [f"cmake/modules.cmake: no file of {module.name} includes one of {dep}"
            for module in modules.values() for dep in module.deps if dep not in needed[module.name]]


def unit_of(path):
    """A header and its source are one unit, under the path that others write in an #include."""
    return os.path.splitext(path[len("src/"):] if path.startswith("src/") else path)[0]


def cycles(texts):
    """The sets of units that include each other, by whatever way round, each sorted."""
    arrows = {}
    for path, text in texts.items():
        if not sources.is_test_code(path):
            arrows.setdefault(unit_of(path), set()).update(
                unit_of(included) for _, quote, included in includes_of(text) if quote == '"')
    reached = {unit: reachable(unit, arrows) for unit in arrows}
    found = {tuple(sorted(other for other in reached[unit] if unit in reached.get(other, ())))
             for unit in arrows if unit in reached[unit]}
    return sorted(found)


def reachable(start, arrows):
    """All units that one includes, with what those include; itself only if something leads back to it."""
    seen, waiting = set(), [unit for unit in arrows.get(start, ()) if unit != start]
    while waiting:
        unit = waiting.pop()
        if unit not in seen:
            seen.add(unit)
            waiting += arrows.get(unit, ())
    return seen


def check_tree(root=sources.ROOT):
    modules = parse_modules(sources.read(os.path.join("cmake", "modules.cmake"), root))
    texts = {path: sources.read(path, root) for path in sources.all_files(root)
             if sources.is_cpp(path) and path.startswith(("src/", "cli/", "include/"))}
    problems = [problem for path, text in texts.items() for problem in check_file(path, text, modules)]
    problems += superfluous(texts, modules)
    problems += [f"these include each other: {' '.join(circle)}" for circle in cycles(texts)]
    return problems


def main():
    problems = check_tree()
    print("\n".join(problems) if problems else "layers: every include points downwards, and every dependency is needed")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
