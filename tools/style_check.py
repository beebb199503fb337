#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rules of style that a text can be judged by: lengths, columns, licence lines, leftovers, file names.

A file or function that has to be longer than the limit stands in tools/style_budget.txt with its length. The
budget is a ratchet: an entry may shrink and must not grow, and an entry that is no longer needed is an error.
tools/english_budget.txt works alike: it has the number of awkward turns of phrase (tools/english.py) that a file still
has, and an entry must be exact.

Usage: style_check.py                  checks the tree
       style_check.py --english [PATH...]      lists the turns of phrase, in all files or those under the paths
       style_check.py --lower-english          lowers the entries of files that have become better
       style_check.py --move-english OLD NEW...        gives the entry of a file that was renamed or split to others
"""

import os
import re
import sys

import english
import sources

FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 60
PARAMETERS_MAX = 5
# The one exception: wrappers of system calls, which have up to six arguments.
SYSTEM_CALL_WRAPPERS = "src/base/system_call.h"
CPP_COLUMNS_MAX = 100
# Scripts have no formatter that could rewrap them.
SCRIPT_COLUMNS_MAX = 120
SPDX = "SPDX-License-Identifier: Apache-2.0"
# Spelled in two halves so that this file passes its own check.
LEFTOVER = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")
BANNED_STEMS = ("utils", "util", "helpers", "helper", "common", "types", "misc")
BUDGET = os.path.join("tools", "style_budget.txt")
ENGLISH_BUDGET = os.path.join("tools", "english_budget.txt")

# Code in a comment: one space after the slashes and a statement. Examples in a header's opening comment are
# indented further and pass.
COMMENTED_CODE = re.compile(
    r"^\s*// ?(?=\S)(?:"
    r"(?:return|break|continue|delete|goto)\b[^.]*;"
    r"|[\w:.>\-\[\]*& ]+ = [^;]*;"
    r"|[\w:.>\-]+\([^;]*\);"
    r"|(?:if|for|while|switch) \(.*\) *\{?"
    r"|\} *(?:else.*)?"
    r"|# *(?:include|define|if|endif)\b.*"
    r")\s*$")


def without_literals(text):
    """The text with comments, strings and character literals blanked out, line breaks kept."""
    pattern = re.compile(
        r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match.group(0)), text)


def functions(text):
    """(name, parameters, number of lines) of each function body in C++ text, nested ones as part of the outer."""
    text = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda match: "\n" * match.group(0).count("\n"),
                  without_literals(text), flags=re.MULTILINE)
    found, kinds, head_start = [], [], 0
    for match in re.finditer(r"[{};]", text):
        position, symbol = match.start(), match.group(0)
        if symbol == "{":
            kind = kind_of_block(text[head_start:position], kinds)
            head = text[head_start:position]
            first = text.count("\n", 0, head_start + len(head) - len(head.lstrip())) + 1
            kinds.append((kind, name_of_function(head), count_parameters(head), first))
        elif symbol == "}" and kinds:
            kind, name, parameters, first = kinds.pop()
            if kind == "function":
                found.append((name, parameters, text.count("\n", 0, position) + 2 - first))
        # Inside parentheses a semicolon or brace does not end a declaration; a function's head has none.
        head_start = position + 1
    return found


def kind_of_block(head, kinds):
    """Whether an opening brace begins a namespace, a type, a function or something within one."""
    if any(kind == "function" for kind, *_ in kinds):
        return "inner"
    if re.search(r"\bnamespace\b", head) or re.search(r"\bextern\s*$", head.rstrip()):
        return "namespace"
    if "(" in head and not re.search(r"=\s*$", head):
        without_attributes = re.sub(r"\b(?:alignas|__attribute__|CAIRN_[A-Z_]+)\s*\([^{]*?\)+", " ", head)
        if "(" in without_attributes or not re.search(r"\b(?:class|struct|union|enum)\b", head):
            return "function"
    return "type"


def name_of_function(head):
    match = re.search(r"([~\w:]+)\s*\(([^()]*)", head)
    if not match:
        return "?"
    if match.group(1) in ("TEST", "TEST_F", "TEST_P", "TYPED_TEST"):
        return re.sub(r"\s+", "", match.group(2)).replace(",", ".")
    return match.group(1)


def count_parameters(head):
    """How many parameters the first list in parentheses of a function's head has."""
    # A hook has those of the function that it replaces, and an object is no function.
    match = re.search(r"[~\w]+\s*\(", head)
    if match is None or match.group(0).startswith("CAIRN_") or re.search(r"\b(?:constinit|constexpr) \w+<", head):
        return 0
    depth, commas, is_empty = 0, 0, True
    for letter in head[match.end() - 1:]:
        depth += {"(": 1, "<": 1, "[": 1, ")": -1, ">": -1, "]": -1}.get(letter, 0)
        if depth == 0:
            break
        commas += letter == "," and depth == 1
        is_empty &= letter in "() \n"
    return 0 if is_empty else commas + 1


def parse_budget(text):
    """{(path, name): lines}; the name is '-' for the file itself, 'name()' for a function's parameters."""
    budget = {}
    for line in text.splitlines():
        words = line.split("#")[0].split()
        if words:
            budget[(words[0], words[1])] = int(words[2])
    return budget


def check_length(path, name, lines, limit, budget, used):
    """A problem if something is longer than the limit or its budget, or stands in the budget without need."""
    key = (path, name)
    what = f"function {name}" if name != "-" else "file"
    if lines <= limit:
        return []
    used.add(key)
    if lines <= budget.get(key, limit):
        return []
    return [f"{path}: {what} has {lines} lines; the limit is {budget.get(key, limit)}"]


def check_parameters(path, name, parameters, budget, used):
    """A problem if a function has more parameters than the limit or its budget."""
    key = (path, f"{name}()")
    if parameters <= PARAMETERS_MAX or sources.is_test_code(path) or path == SYSTEM_CALL_WRAPPERS:
        return []
    used.add(key)
    limit = budget.get(key, PARAMETERS_MAX)
    return [f"{path}: {name} has {parameters} parameters; the limit is {limit}"] if parameters > limit else []


def check_cpp(path, text, budget, used):
    problems = []
    for name, parameters, lines in functions(text):
        problems += check_length(path, name, lines, FUNCTION_LINES_MAX, budget, used)
        problems += check_parameters(path, name, parameters, budget, used)
    if path.endswith(".h") and "#pragma once" not in text:
        problems.append(f"{path}: no #pragma once")
    stem = os.path.splitext(os.path.basename(path))[0]
    if stem in BANNED_STEMS:
        problems.append(f"{path}: a file is named after the thing in it, not '{stem}'")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", stem):
        problems.append(f"{path}: file names are snake_case")
    for number, line in enumerate(text.splitlines(), 1):
        if COMMENTED_CODE.match(line):
            problems.append(f"{path}:{number}: looks like commented-out code (indent examples by two more spaces)")
    return problems


def check_text(path, text):
    """The rules for every source, whatever its language."""
    problems = []
    columns_max = CPP_COLUMNS_MAX if sources.is_cpp(path) else SCRIPT_COLUMNS_MAX
    if SPDX not in "\n".join(text.splitlines()[:3]):
        problems.append(f"{path}: no '{SPDX}' at the top")
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > columns_max:
            problems.append(f"{path}:{number}: {len(line)} columns; the limit is {columns_max}")
        if LEFTOVER.search(line):
            problems.append(f"{path}:{number}: a leftover that belongs into an issue")
        if line != line.rstrip():
            problems.append(f"{path}:{number}: white space at the end of the line")
    return problems


def english_findings(root=sources.ROOT, prefixes=()):
    """{path: findings} of all files with prose in which english.py finds something."""
    found = {}
    for path in sources.all_files(root):
        if not (sources.is_cpp(path) or path.endswith(".md") or sources.is_script(path, root)):
            continue
        if not prefixes or path.startswith(prefixes):
            findings = english.findings(path, sources.read(path, root))
            if findings:
                found[path] = findings
    return found


def parse_english_budget(text):
    """{path: count}."""
    words = (line.split("#")[0].split() for line in text.splitlines())
    return {row[0]: int(row[1]) for row in words if row}


def read_english_budget(root):
    path = os.path.join(root, ENGLISH_BUDGET)
    return parse_english_budget(sources.read(ENGLISH_BUDGET, root)) if os.path.exists(path) else {}


def check_english(found, budget):
    """Problems where a file has more turns of phrase than its budget, or a budget is higher than it need be."""
    problems = []
    for path in sorted(set(found) | set(budget)):
        findings, allowed = found.get(path, []), budget.get(path, 0)
        if len(findings) > allowed:
            problems.append(f"{path}: {len(findings)} awkward turns of phrase; the limit is {allowed} "
                            "(tools/english.py)")
            problems += [f"{path}:{line}: '{words}'" for line, words in findings]
        elif len(findings) < allowed:
            problems.append(f"{ENGLISH_BUDGET}: {path} has {len(findings)} now, not {allowed}; lower the entry "
                            "(style_check.py --lower-english)")
    return problems


def write_english_budget(budget, root):
    lines = [line for line in sources.read(ENGLISH_BUDGET, root).splitlines() if line.startswith("#")]
    lines += [f"{path} {count}" for path, count in sorted(budget.items()) if count]
    with open(os.path.join(root, ENGLISH_BUDGET), "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


def lower_english_budget(root=sources.ROOT):
    """Rewrites the budget: no entry is raised, none is added, those of files without findings go."""
    found = english_findings(root)
    write_english_budget({path: min(allowed, len(found.get(path, [])))
                          for path, allowed in read_english_budget(root).items()}, root)


def move_english_budget(old, new_paths, root=sources.ROOT):
    """Shares the entry of `old` among files into which it was split. Returns: whether they have no more than that."""
    found, budget = english_findings(root), read_english_budget(root)
    paths = {old, *new_paths}
    counts = {path: len(found.get(path, [])) for path in paths}
    if sum(counts.values()) > sum(budget.get(path, 0) for path in paths):
        return False
    write_english_budget(budget | counts, root)
    return True


def check_tree(root=sources.ROOT):
    budget_path = os.path.join(root, BUDGET)
    budget = parse_budget(sources.read(BUDGET, root)) if os.path.exists(budget_path) else {}
    used, problems = set(), []
    for path in sources.all_files(root):
        if not sources.is_cpp(path) and not sources.is_script(path, root):
            continue
        text = sources.read(path, root)
        problems += check_text(path, text)
        problems += check_length(path, "-", len(text.splitlines()), FILE_LINES_MAX, budget, used)
        if sources.is_cpp(path):
            problems += check_cpp(path, text, budget, used)
    problems += [f"{BUDGET}: {path} {name} is within the limit now; remove the entry"
                 for path, name in sorted(set(budget) - used)]
    return problems + check_english(english_findings(root), read_english_budget(root))


def main(arguments):
    if arguments[:1] == ["--english"]:
        for path, findings in english_findings(prefixes=tuple(arguments[1:])).items():
            print("\n".join(f"{path}:{line}: {words}" for line, words in findings))
        return 0
    if arguments == ["--lower-english"]:
        lower_english_budget()
        return 0
    if arguments[:1] == ["--move-english"] and len(arguments) > 2:
        if move_english_budget(arguments[1], arguments[2:]):
            return 0
        print(f"{' '.join(arguments[2:])}: more awkward turns of phrase than {arguments[1]} had", file=sys.stderr)
        return 1
    if arguments:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    problems = check_tree()
    print("\n".join(problems) if problems else "style: lengths, columns, licence lines, names and English are in order")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
