# SPDX-License-Identifier: Apache-2.0
set -e
for db in *.db; do [ "$(sqlite3 "$db" 'PRAGMA integrity_check;')" = ok ] || { echo "$db is damaged"; exit 1; }; done
[ "$(sqlite3 two-wal.db 'SELECT count(*) FROM t;')" = 120 ]
