#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Real climate, topography and shoreline files worked over several times, by the tools people use on
# them: NCO and CDO where installed, and Python's netCDF4 always.
# Usage: climate.sh PYTHON INPUTS ROUNDS; works in the current directory.
source "$(dirname "${BASH_SOURCE[0]}")/phases.sh"

programs=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=$1 inputs=$2 rounds=$3
climate=$inputs/climate
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

# -h and --no_history keep the date of the run out of the files, so that runs can be compared.
averages() {
  local out=$1
  ncwa -h -O -a TIME "$climate/coads_climatology.cdf" "$out/coads_mean.nc"
  ncwa -h -O -y max -a TIME "$climate/monthly_navy_winds.cdf" "$out/winds_max.nc"
  ncwa -h -O -a TIME "$climate/ocean_atlas_subset.nc" "$out/ocean_mean.nc"
  ncdiff -h -O "$climate/ocean_atlas_subset.nc" "$out/ocean_mean.nc" "$out/ocean_anomaly.nc"
  ncks -h -O -4 -L 1 "$out/ocean_anomaly.nc" "$out/ocean_anomaly_packed.nc"
}

grids() {
  local out=$1
  cdo -s --no_history gridboxmean,8,8 "$climate/etopo5.cdf" "$out/etopo_coarse.nc"
  cdo -s --no_history splitmon "$climate/monthly_navy_winds.cdf" "$out/winds_"
  cdo -s --no_history -O mergetime "$out"/winds_??.nc "$out/winds_sorted.nc"
  cdo -s --no_history fldmean "$climate/ocean_atlas_subset.nc" "$out/ocean_profile.nc"
}

for ((round = 1; round <= rounds; round++)); do
  out=round_$round
  mkdir "$out"
  if command -v ncwa >/dev/null; then
    cold_phase "round $round: means and anomalies (nco)" averages "$out"
  fi
  if command -v cdo >/dev/null; then
    cold_phase "round $round: coarse grids, split and merge (cdo)" grids "$out"
  fi
  cold_phase "round $round: heights, currents of air and coasts (Python netCDF4)" \
    "$python" "$programs/earth.py" --round "$round" "$inputs" "$out"
done
