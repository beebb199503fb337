#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Prints the path of the upstream archive of a Debian source package, fetched once into build/tools/sources.
# Prints nothing and fails where the sources cannot be had.
set -euo pipefail
package=$1
cache=$(dirname "$(readlink -f "$0")")/../../build/tools/sources
mkdir -p "$cache"
cache=$(readlink -f "$cache")
find_archive() { find "$cache" -name "${package}_*.orig.tar.*" ! -name '*.asc' | head -1; }
archive=$(find_archive)
if [ -z "$archive" ]; then
  # Inside a run of Cairn nothing is fetched: the native run came first and did it.
  [ -z "${CAIRN_SOCKET:-}" ] || exit 1
  # The system's own sources, asked for sources in place of packages. One that has none does not matter: whether the
  # archive is there is what counts.
  mkdir -p "$cache/lists/partial" "$cache/parts"
  : >"$cache/sources.list"
  for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
    [ ! -f "$list" ] || sed -n 's/^deb /deb-src /p' "$list" >>"$cache/sources.list"
  done
  for list in /etc/apt/sources.list.d/*.sources; do
    [ ! -f "$list" ] || sed 's/^Types:.*/Types: deb-src/' "$list" >"$cache/parts/${list##*/}"
  done
  options=(-o "Dir::Etc::sourcelist=$cache/sources.list" -o "Dir::Etc::sourceparts=$cache/parts"
    -o "Dir::State::lists=$cache/lists" -o APT::Get::List-Cleanup=0 -o DPkg::Lock::Timeout=60)
  (cd "$cache" && { timeout 60 apt-get "${options[@]}" update -qq || true; } &&
    timeout 60 apt-get "${options[@]}" source -qq --download-only "$package") >"$cache/fetch.log" 2>&1 || exit 1
  archive=$(find_archive)
fi
echo "$archive"
