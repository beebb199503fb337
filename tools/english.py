#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns of phrase that a reader stumbles over, found in the prose of comments and documents.

style_check.py counts them for each file against tools/english_budget.txt. The rules are few and narrow, because a false
alarm costs more than a sentence that slips through. CONTRIBUTING.md says how to write instead: the actor first, the
present tense, a noun for a name, one fact a sentence.
"""

import bisect
import re

# A sentence begins with the paragraph, or behind the end of another sentence.
_BEGIN = r"(?:^|(?<=[.!?:]\s))[\"'(*`]*"
_SENTENCE_OPENING = re.compile(
    _BEGIN + r"(?:(?:Who|Whom|Whose|What (?:is|was))\b(?!')|Of (?!course\b))[^.?!]*\??")
# "handlers are as they were, whoever sets them" is good English: after a comma the word concedes and is no subject.
_ANYWHERE = re.compile(
    r"\b[Ww]hom\b|\bWhoever\b|(?<!, )\bwhoever\b|(?<=[;:] )who\b(?! has\b)"
    r"|\b(?:is|are)(?: also| never| not| only)? (?:told|asked)\b(?! apart)")

_CPP_PROSE = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)
# Comments, and the strings that document a module, class or function: those that begin a line.
_SCRIPT_PROSE = re.compile(
    r'^[ \t]*("""|\'\'\').*?\1|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|(?:^|(?<=\s))#(?!!)[^\n]*',
    re.DOTALL | re.MULTILINE)
# A paragraph of its own: a bullet, a numbered step, a row of a table, a label such as "Thread safety:".
_MARK = re.compile(r"^(?:[-*]|\d+\.)\s+")
_COMMENT_SIGNS = re.compile(r"^\s*(?:/{2,}|/?\*+/?|#+|\"{3}|'{3})?|(?:\*/|\"{3}|'{3})\s*$")
_OWN_PARAGRAPH = re.compile(r"^(?:[-*|]|\d+\.|[A-Z][A-Za-z ]{0,30}:)\s")


class _Paragraphs:
    """Collects lines into paragraphs, each a list of (line number, text)."""

    def __init__(self):
        self.done = []
        self._open = []

    def add(self, number, text):
        if not text or _OWN_PARAGRAPH.match(text):
            self.end()
        text = _MARK.sub("", text)
        if text:
            self._open.append((number, text))

    def end(self):
        if self._open:
            self.done.append(self._open)
        self._open = []


def _comment_lines(text, pattern, marks):
    """(line number, text, whether code stands before it) of each line of each comment."""
    starts = [0] + [match.end() for match in re.finditer("\n", text)]
    for match in pattern.finditer(text):
        comment = match.group(0)
        if not comment.lstrip().startswith(marks):
            continue
        first = bisect.bisect_right(starts, match.start())
        beside_code = bool(text[starts[first - 1]:match.start()].strip())
        for offset, line in enumerate(comment.split("\n")):
            yield first + offset, _COMMENT_SIGNS.sub("", line).strip(), beside_code and offset == 0


def _comment_paragraphs(text, pattern, marks):
    paragraphs, last = _Paragraphs(), 0
    for number, line, beside_code in _comment_lines(text, pattern, marks):
        if number != last + 1 or beside_code:
            paragraphs.end()
        paragraphs.add(number, line)
        last = number
    paragraphs.end()
    return paragraphs.done


def _document_paragraphs(text):
    """Those of Markdown, without fenced code and headings; each cell of a table stands by itself."""
    paragraphs, in_code = _Paragraphs(), False
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if line.startswith("```"):
            in_code = not in_code
        if in_code or line.startswith(("```", "#")):
            paragraphs.end()
            continue
        for cell in line.strip("|").split("|") if line.startswith("|") else [line]:
            if line.startswith("|"):
                paragraphs.end()
            paragraphs.add(number, cell.strip())
    paragraphs.end()
    return paragraphs.done


def paragraphs_of(path, text):
    """The prose of a file, as lists of (line number, text)."""
    if path.endswith(".md"):
        return _document_paragraphs(text)
    if path.endswith((".cc", ".h", ".c")):
        return _comment_paragraphs(text, _CPP_PROSE, ("//", "/*"))
    return _comment_paragraphs(text, _SCRIPT_PROSE, ("#", '"""', "'''"))


def findings(path, text):
    """(line number, the words) of each known turn of phrase in a file's prose, in its order."""
    found = []
    for paragraph in paragraphs_of(path, text):
        joined = " ".join(line for _, line in paragraph)
        ends, length = [], 0
        for _, line in paragraph:
            length += len(line) + 1
            ends.append(length)
        openings = {match.start() for match in _SENTENCE_OPENING.finditer(joined) if not match.group(0).endswith("?")}
        for start in openings | {match.start() for match in _ANYWHERE.finditer(joined)}:
            line = paragraph[bisect.bisect_right(ends, start)][0]
            found.append((line, joined[start:start + 50]))
    return sorted(found)
