#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Work on a real source tree with tar, grep, sed, make, gcc and sha256sum: unpack, search, change,
# build two small libraries, write a manifest, pack again. Usage: source_tree.sh ARCHIVE; works in the
# current directory. Everything it leaves is the same on every run.
source "$(dirname "${BASH_SOURCE[0]}")/phases.sh"

archive=$1

unpack() { tar -xzf "$archive"; }

search() {
  grep -rn --include='*.[ch]' 'struct folio' linux | LC_ALL=C sort >folio_uses.txt
  grep -rlw 'kmalloc' linux | LC_ALL=C sort >kmalloc_files.txt
}

change() {
  grep -rlZw 'GFP_KERNEL' linux | xargs -0 sed -i 's/\bGFP_KERNEL\b/GFP_KERNEL_ACCOUNT/g'
}

build() {
  local library
  for library in subcmd api; do
    make -s -C "linux/tools/lib/$library" >build.log 2>&1 || { cat build.log >&2; return 1; }
  done
}

manifest() { find linux -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum >manifest.txt; }

# The times of what was built differ from run to run, so the archive carries none.
pack() {
  tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -cf linux-changed.tar linux
}

phase "unpack $(basename "$archive") (tar, gzip)" unpack
cold_phase "search the tree twice (grep)" search
cold_phase "change every file that allocates (grep, sed -i)" change
phase "build two libraries of it (make, gcc, ar)" build
cold_phase "write a manifest (find, sha256sum)" manifest
cold_phase "pack the tree again (tar)" pack
