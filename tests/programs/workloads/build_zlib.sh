# SPDX-License-Identifier: Apache-2.0
# needs: gcc make ar apt-get
# timeout: 120
# ignore: *.o *.a *.so* *.lo *.log example* minigzip* *64 *sh *.pc
# volatile: ztest* */ztest* foo.gz */foo.gz
# A real package, zlib, from the distribution's sources.
set -euo pipefail
source=$("$TOOLS/fetch_source.sh" zlib || true)
[ -n "$source" ] || { echo "the sources of zlib cannot be had here"; exit 77; }
tar xf "$source"
cd zlib-*
CFLAGS='-O1' ./configure >/dev/null
make -s -j2 >/dev/null
make -s test 2>&1 | grep -c 'OK'
ls *.so.*
sha256sum zconf.h zlib.h
