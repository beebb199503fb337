# SPDX-License-Identifier: Apache-2.0
# timeout: 300
# output: verdicts
# volatile: *
# CPython's own test_os, judged test by test.
exec "$BASH" "$TOOLS/cpython_tests.sh" test_os
