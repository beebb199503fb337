#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rewraps C++ comments that are wider than the limit, and leaves all others alone.

clang-format can do this too, but it flows state tables and numbered lists into one paragraph; so .clang-format
turns that off and `./dev format` runs this first. Tables (columns apart by two or more spaces) are never touched.

Usage: rewrap_comments.py FILE...      rewrites the files in place
"""

import re
import sys
import textwrap

import style_check

WIDTH = style_check.CPP_COLUMNS_MAX
COMMENT = re.compile(r"^(\s*)//( *)(.*)$")
BULLET = re.compile(r"^(\d+\.|[-*]) +")
# A line that begins a paragraph of its own, whatever stands before it.
OPENING = re.compile(r"^(?:SPDX-|[A-Z][A-Za-z ]{0,30}:)")
TABLE = re.compile(r"\S {2,}\S")


class Line:
    """A line that is nothing but a comment."""

    def __init__(self, match):
        self.margin, self.indent, text = match.groups()
        bullet = BULLET.match(text)
        self.bullet = bullet.group(0) if bullet else ""
        self.text = text[len(self.bullet):]

    def is_prose(self):
        return bool(self.text) and not TABLE.search(self.text)

    def continues(self, first):
        """Whether this line is part of the paragraph that `first` begins."""
        hanging = len(first.indent) + len(first.bullet)
        return (self.is_prose() and not self.bullet and not OPENING.match(self.text)
                and not first.text.startswith("SPDX-")
                and self.margin == first.margin and len(self.indent) == hanging)


def comment_line(text):
    match = COMMENT.match(text)
    return Line(match) if match else None


def wrapped(first, words):
    prefix = f"{first.margin}//{first.indent}"
    return textwrap.wrap(" ".join(words), WIDTH, initial_indent=prefix + first.bullet,
                         subsequent_indent=prefix + " " * len(first.bullet),
                         break_long_words=False, break_on_hyphens=False)


def lift_trailing_comment(line, following):
    """`code;  // overlong` as a comment above the code, unless the comment goes on below."""
    match = re.match(r"^(\s*)(\S.*?\S|\S)\s+(// .*)$", line)
    if not match or '"' in line or following.strip().startswith("//"):
        return [line]
    margin, code, comment = match.groups()
    return rewrap([margin + comment]) + [margin + code]


def rewrap(lines):
    result, index = [], 0
    while index < len(lines):
        first = comment_line(lines[index])
        if first is None:
            following = lines[index + 1] if index + 1 < len(lines) else ""
            too_wide = len(lines[index]) > WIDTH and "//" in lines[index]
            result += lift_trailing_comment(lines[index], following) if too_wide else [lines[index]]
            index += 1
            continue
        end = index + 1
        while end < len(lines):
            line = comment_line(lines[end])
            if line is None or not line.continues(first):
                break
            end += 1
        paragraph = lines[index:end]
        if first.is_prose() and any(len(line) > WIDTH for line in paragraph):
            paragraph = wrapped(first, [comment_line(line).text for line in paragraph])
        result += paragraph
        index = end
    return result


def main(paths):
    for path in paths:
        with open(path, encoding="utf-8") as file:
            before = file.read()
        after = "\n".join(rewrap(before.split("\n")))
        if after != before:
            with open(path, "w", encoding="utf-8") as file:
                file.write(after)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
