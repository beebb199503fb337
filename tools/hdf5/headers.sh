#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes a folder with the public headers of HDF5, for the build of the connector, which links no HDF5. One of them,
# H5pubconf.h, is written by HDF5's own configuration: about 12 seconds, and nothing of HDF5 is compiled.
#
# Usage: headers.sh FOLDER      cargo, ninja and a CMake of at least 3.26 have to be in the path
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
target=$1

work=$(mktemp -d "$(dirname "$target")/hdf5.XXXXXX")
trap 'rm -rf "$work"' EXIT

cp -r "$here/Cargo.toml" "$here/Cargo.lock" "$here/src" "$work"
(cd "$work" && cargo vendor --quiet --locked --versioned-dirs vendor >/dev/null)
source=$(echo "$work"/vendor/hdf5-metno-src-*/ext/hdf5)
cmake -G Ninja -S "$source" -B "$work/configured" -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF \
  -DHDF5_BUILD_EXAMPLES=OFF -DHDF5_BUILD_TOOLS=OFF -DHDF5_BUILD_UTILS=OFF -DHDF5_BUILD_HL_LIB=OFF \
  -DHDF5_NO_PACKAGES=ON -DBUILD_STATIC_LIBS=OFF \
  -DHDF5_ENABLE_ZLIB_SUPPORT=OFF -DHDF5_ENABLE_SZIP_SUPPORT=OFF >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }

mkdir "$work/include"
cp "$source"/src/{hdf5,H5public,H5api_adpt,H5version,H5Epubgen,H5PLextern}.h "$source"/src/H5{FD,VL}*.h \
  "$source"/src/H5[^FV]*{public,develop}.h "$source"/src/H5Fpublic.h "$source"/src/H5FDsubfiling/*.h \
  "$work/configured/src/H5pubconf.h" "$work/include"
cp "$here/Cargo.lock" "$here/headers.sh" "$source/LICENSE" "$work/include"
# A header that is missing is noticed here, not by the build of everything.
printf '#include "hdf5.h"\n#include "H5PLextern.h"\n#include "H5VLconnector.h"\n' |
  c++ -I"$work/include" -fsyntax-only -x c++ -
# All of it or nothing, whoever else is building.
rm -rf "$target"
mv -T "$work/include" "$target"
