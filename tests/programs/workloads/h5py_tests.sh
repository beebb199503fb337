# SPDX-License-Identifier: Apache-2.0
# python: h5py pytest
# timeout: 240
# output: verdicts
# volatile: *
# One test expects a permission error, which root does not get; the parallel ones need MPI.
set -uo pipefail
"$PYTHON" -m pytest -q -rA --pyargs h5py -p no:cacheprovider --import-mode=importlib \
  -k 'not TestMPI and not test_append_permissions' >"$SCRATCH/log" 2>&1
tail -3 "$SCRATCH/log" >&2
sed -n -E 's/^PASSED (.*)$/\1 ok/p; s/^(FAILED|ERROR) ([^ ]*).*$/\2 failed/p' "$SCRATCH/log" | sort
