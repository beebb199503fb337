#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs modules of CPython's own test suite in the current directory and prints "NAME VERDICT" lines. The
# interpreter is the first that comes with its tests (Debian keeps them in libpython3.11-testsuite).
set -uo pipefail
beside=$(dirname "$(readlink -f "$PYTHON" 2>/dev/null || echo /nowhere/x)")/python3
for python in /usr/bin/python3 python3 "$beside"; do
  "$python" -c 'import test.test_io' 2>/dev/null && break
  python=
done
[ -n "$python" ] || { echo "no interpreter with its tests here; Debian: libpython3.11-testsuite" >&2; exit 0; }
"$python" -m test -v -w "$@" >"$SCRATCH/log" 2>&1
tail -3 "$SCRATCH/log" >&2
# A verdict may stand on a later line than its name, when the test prints something itself.
"$python" - "$SCRATCH/log" <<'PYTHON'
import re, sys
name = None
found = {}
for line in open(sys.argv[1], errors="replace"):
    start = re.match(r"(test\w*) \(([\w.]+)\)", line)
    if start:
        name = start.group(2) if start.group(2).endswith(start.group(1)) else ".".join(start.group(2, 1))
    end = re.search(r"(?:\.\.\. |^)(ok|FAIL|ERROR|skipped.*|expected failure)\s*$", line)
    if name and end:
        found[name] = {"ok": "ok", "FAIL": "failed", "ERROR": "failed"}.get(end.group(1), "skipped")
        name = None
for name in sorted(found):
    print(name, found[name])
PYTHON
