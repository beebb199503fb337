#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Fetches the demo's real data from the Debian archive into INPUTS (default build/demo/inputs):
#   linux.tar.gz        a part of Debian's kernel source (linux-source-6.1)
#   linux-small.tar.gz  a smaller part, for the quick run
#   climate/            climatologies, winds and topography (ferret-datasets)
#   shoreline/          the world's shorelines and rivers in full resolution (gmt-gshhg-full)
#
# The packages are downloaded and unpacked, never installed: so the same lines work without root, and
# nothing on the machine changes. Everything already there is kept; a second call does nothing.
set -euo pipefail

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
inputs=${1:-$repository/build/demo/inputs}
packages=$repository/build/demo/packages

say() { printf 'demo: %s\n' "$*"; }
die() { printf 'demo: %s\n' "$*" >&2; exit 1; }

# Parts of the tree that the workload unpacks. tools/ holds libraries that build without a kernel
# configuration.
buildable=(tools/lib/subcmd tools/lib/api tools/lib/str_error_r.c tools/include tools/build tools/scripts)
full_parts=(mm kernel lib "${buildable[@]}")
small_parts=(mm "${buildable[@]}")

refresh_package_lists() {
  if [ "$(id -u)" = 0 ]; then
    say "refreshing the package lists (apt-get update)"
    apt-get update -qq
  else
    die "apt knows no package '$1': run 'apt-get update' as root once, then this again"
  fi
}

# Leaves the newest package of that name as packages/NAME.deb.
download() {
  local name=$1 scratch
  [ -s "$packages/$name.deb" ] && return
  [ -n "$(apt-cache show "$name" 2>/dev/null)" ] || refresh_package_lists "$name"
  say "downloading $name from the Debian archive"
  mkdir -p "$packages"
  scratch=$(mktemp -d "$packages/download.XXXXXX")
  (cd "$scratch" && apt-get download -qq "$name" 2>"$packages/$name.log") ||
    { refresh_package_lists "$name"; (cd "$scratch" && apt-get download -qq "$name"); }
  mv "$scratch"/*.deb "$packages/$name.deb"
  rm -rf "$scratch"
}

unpack() {
  local name=$1 destination=$2
  rm -rf "$destination"
  mkdir -p "$destination"
  dpkg-deb -x "$packages/$name.deb" "$destination"
}

# Packs the named parts of an unpacked tree with fixed names, owners and order.
pack() {
  local archive=$1 directory=$2
  shift 2
  tar -C "$directory" --sort=name --owner=0 --group=0 --numeric-owner \
    --transform 's,^,linux/,' -cf - "$@" | gzip -1 -n >"$archive.partial"
  mv "$archive.partial" "$archive"
}

make_source_archives() {
  [ -s "$inputs/linux.tar.gz" ] && [ -s "$inputs/linux-small.tar.gz" ] && return
  download linux-source-6.1
  say "taking a part of the kernel source out of its package (once, about 20 s)"
  local scratch=$inputs/scratch
  unpack linux-source-6.1 "$scratch/package"
  mkdir -p "$scratch/tree"
  xz -T0 -dc "$scratch"/package/usr/src/linux-source-6.1.tar.xz |
    tar -C "$scratch/tree" --strip-components=1 -xf - "${full_parts[@]/#/linux-source-6.1/}"
  pack "$inputs/linux.tar.gz" "$scratch/tree" "${full_parts[@]}"
  pack "$inputs/linux-small.tar.gz" "$scratch/tree" "${small_parts[@]}"
  rm -rf "$scratch"
}

make_climate() {
  [ -d "$inputs/climate" ] && return
  download ferret-datasets
  unpack ferret-datasets "$inputs/scratch"
  mkdir -p "$inputs/climate.partial"
  local name
  for name in etopo5.cdf coads_climatology.cdf levitus_climatology.cdf monthly_navy_winds.cdf \
    esku_heat_budget.cdf ocean_atlas_subset.nc; do
    mv "$inputs/scratch/usr/share/ferret-vis/data/$name" "$inputs/climate.partial/"
  done
  mv "$inputs/climate.partial" "$inputs/climate"
  rm -rf "$inputs/scratch"
}

make_shoreline() {
  [ -d "$inputs/shoreline" ] && return
  download gmt-gshhg-full
  unpack gmt-gshhg-full "$inputs/scratch"
  mv "$inputs/scratch/usr/share/gmt-gshhg" "$inputs/shoreline"
  rm -rf "$inputs/scratch"
}

mkdir -p "$inputs"
make_source_archives
make_climate
make_shoreline
