#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A simulation that writes its time steps to HDF5, then a program that reads them back and finds the
# clusters in each. Usage: checkpoint.sh PYTHON STEPS PARTICLES; works in the current directory.
source "$(dirname "${BASH_SOURCE[0]}")/phases.sh"

programs=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=$1 steps=$2 particles=$3
# One thread computes: so computing time and I/O time do not overlap, and can be told apart.
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

phase "simulate and write $steps steps of $particles particles (h5py)" \
  "$python" "$programs/particles.py" --steps "$steps" --particles "$particles" .
cold_phase "read the steps back and find clusters (h5py)" \
  "$python" "$programs/clusters.py" .
