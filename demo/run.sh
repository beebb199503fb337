#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The demo: real programs on real data, each run directly and under `cairn run`, compared and timed.
# `./dev demo` builds Cairn and calls this.
#
#   demo/run.sh [--quick] [--direct-only] [--only source-tree|checkpoint|climate]...
#
# As root the backing store is the `hdd` of bench/testbed (a disk of 115/95 MB/s), otherwise, where that
# cannot be set up, or with --quick (small inputs, for checks), a plain directory under build/. Everything
# it made is removed at the end, also after Ctrl-C; the downloads stay in build/demo for the next time.
set -euo pipefail

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
scratch=$repository/build/demo
testbed=$repository/bench/testbed
testbed_mount=/run/cairn-testbed/mnt/hdd
cairn=$repository/build/release/bin/cairn

arguments=()
direct_only=0
use_testbed=1
while [ $# -gt 0 ]; do
  case $1 in
    --quick) arguments+=(--quick); use_testbed=0 ;;
    --direct-only) direct_only=1 ;;
    --only) arguments+=(--only "${2:?--only needs the name of a workload}"); shift ;;
    -h | --help) sed -n '4,11s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
    *) printf "demo: unknown option '%s'; see demo/run.sh --help\n" "$1" >&2; exit 2 ;;
  esac
  shift
done

say() { printf 'demo: %s\n' "$*"; }
die() { printf 'demo: %s\n' "$*" >&2; exit 1; }

store=
testbed_is_ours=0
compare=
clean_up() {
  trap '' INT TERM HUP
  trap - EXIT
  [ -z "$store" ] || rm -rf "$store"
  if [ "$testbed_is_ours" = 1 ]; then
    "$testbed" down hdd >/dev/null || say "bench/testbed down hdd failed; run it again by hand"
  fi
}

# The terminal sends Ctrl-C to compare.py as well; any other signal is handed on. It ends its programs first.
stop() {
  [ -z "$compare" ] || { [ "$1" = INT ] || kill -TERM "$compare"; wait "$compare" || true; } 2>/dev/null
  exit 130
}
trap clean_up EXIT
trap 'stop INT' INT
trap 'stop TERM' TERM HUP

install_tools() {
  local missing=() pair
  for pair in tar:tar xz:xz-utils make:make gcc:gcc dpkg-deb:dpkg ncks:nco cdo:cdo; do
    command -v "${pair%%:*}" >/dev/null || missing+=("${pair##*:}")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  if [ "$(id -u)" = 0 ]; then
    say "installing ${missing[*]}"
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" \
      >"$scratch/install.log" 2>&1 ||
      { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
        --no-install-recommends "${missing[@]}" >"$scratch/install.log" 2>&1; } ||
      die "could not install ${missing[*]}; see build/demo/install.log"
  else
    say "not installed, and this is not root: ${missing[*]}; what needs nco or cdo is left out"
  fi
}

[ "$(id -u)" = 0 ] && [ -x "$testbed" ] || use_testbed=0

prepare_store() {
  if [ "$use_testbed" = 1 ]; then
    if mountpoint -q "$testbed_mount"; then
      say "using the hdd testbed that is already up"
    else
      say "setting up the hdd testbed (bench/testbed up hdd)"
      testbed_is_ours=1
      "$testbed" up hdd >"$scratch/testbed.log" 2>&1 ||
        { say "no testbed on this machine, see build/demo/testbed.log"; "$testbed" down hdd \
          >/dev/null 2>&1 || true; testbed_is_ours=0; }
    fi
  fi
  if [ "$use_testbed" = 1 ] && mountpoint -q "$testbed_mount"; then
    store=$testbed_mount/demo-$$
    description="the hdd testbed (115/95 MB/s, 240 requests/s)"
  else
    store=$scratch/store-$$
    description="a plain directory ($(df --output=fstype "$scratch" | tail -n 1) on this machine's disk)"
  fi
  mkdir -p "$store"
}

mkdir -p "$scratch"
install_tools
if [ "$direct_only" = 0 ]; then
  [ -x "$cairn" ] || die "build/release/bin/cairn is not there: run ./dev build first"
  arguments+=(--cairn "$cairn")
fi
python=$("$repository/dev" venv numpy h5py netCDF4)
"$repository/demo/inputs.sh"
prepare_store
"$python" "$repository/demo/compare.py" --store "$store" --store-description "$description" \
  --inputs "$scratch/inputs" --scratch "$scratch" "${arguments[@]}" &
compare=$!
wait "$compare"
