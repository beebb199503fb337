#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes a folder with an HDF5, its headers, and h5_api_test, its own tests of what a VOL connector has to do. Debian 12
# has none that loads connectors. The crate of headers.sh leaves tests out, so the source is that of Debian 13, which
# apt checks by its archive key; apt works in a folder of its own, and the system's packages stay as they are. About two
# minutes on two cores.
#
# Usage: library.sh FOLDER [MPI]      MPI: mpich or openmpi, for an HDF5 that reads in parallel by Debian's MPI of that
#                                     name. ninja and cmake have to be in the path.
set -euo pipefail
maker=$(readlink -f "${BASH_SOURCE[0]}")
parallel=() tests=ON goal=h5_api_test programs=made/bin/h5_api_test
# One parallel HDF5 with the tests is enough.
[ "${2:-}" != openmpi ] || tests=OFF goal=hdf5-shared programs=
[ -z "${2:-}" ] || parallel=(-DHDF5_ENABLE_PARALLEL=ON "-DMPI_C_COMPILER=mpicc.$2")
mkdir -p "$(dirname "$1")"
target=$(readlink -f "$(dirname "$1")")/$(basename "$1")
readonly KEYS=/usr/share/keyrings/debian-archive-keyring.gpg

work=$(mktemp -d "$(dirname "$target")/hdf5-made.XXXXXX")
trap 'rm -rf "$work"' EXIT
# With its apt: the user of its own that downloads could not write here.
chmod 755 "$work"

site=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | grep -m1 '/debian/*$')
printf 'Types: deb-src\nURIs: %s\nSuites: trixie\nComponents: main\nSigned-By: %s\n' "$site" "$KEYS" \
  >"$work/trixie.sources"
mkdir -p "$work/apt/lists/partial" "$work/apt/archives/partial"
touch "$work/apt/status"
apt_get() {
  apt-get -qq -o Dir::Etc::sourcelist="$work/trixie.sources" -o Dir::Etc::sourceparts=/dev/null \
    -o Dir::State="$work/apt" -o Dir::State::lists="$work/apt/lists" -o Dir::State::status="$work/apt/status" \
    -o Dir::Cache="$work/apt" -o APT::Sandbox::User=root "$@"
}
cd "$work"
apt_get update
apt_get source --download-only hdf5
tar xzf hdf5_*.orig.tar.gz

cmake -G Ninja -S hdf5-*/ -B made "${parallel[@]}" -DCMAKE_BUILD_TYPE=Release \
  "-DCMAKE_C_FLAGS_RELEASE=-O1 -DNDEBUG" -DBUILD_TESTING="$tests" -DHDF5_TEST_API=ON -DHDF5_TEST_PARALLEL=OFF \
  -DHDF5_TEST_SERIAL=OFF -DHDF5_TEST_TOOLS=OFF -DHDF5_TEST_EXAMPLES=OFF -DHDF5_TEST_SWMR=OFF -DHDF5_TEST_CPP=OFF \
  -DHDF5_BUILD_EXAMPLES=OFF -DHDF5_BUILD_TOOLS=OFF -DHDF5_BUILD_UTILS=OFF -DHDF5_BUILD_HL_LIB=OFF \
  -DHDF5_BUILD_CPP_LIB=OFF -DHDF5_NO_PACKAGES=ON -DBUILD_STATIC_LIBS=OFF -DHDF5_ENABLE_Z_LIB_SUPPORT=ON \
  -DHDF5_ENABLE_SZIP_SUPPORT=OFF >log 2>&1 || { tail -20 log >&2; exit 1; }
cmake --build made --target "$goal" >>log 2>&1 || { tail -20 log >&2; exit 1; }

mkdir kept
cmake --install made --prefix kept --component headers >>log
cp -P $programs made/bin/libhdf5*.so* kept
cp "$maker" kept/made_by
rm -rf "$target"
mv -T kept "$target"
