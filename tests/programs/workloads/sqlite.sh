# SPDX-License-Identifier: Apache-2.0
# needs: sqlite3
# timeout: 90
# ignore: *.db
# volatile: *.db-wal *.db-shm
set -euo pipefail
for mode in delete truncate persist wal memory; do
  db=$mode.db
  sqlite3 "$db" "PRAGMA journal_mode=$mode; CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c BLOB);"
  sqlite3 "$db" "BEGIN; WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<5000)
    INSERT INTO t SELECT i, 'text ' || i, zeroblob(i % 300) FROM n; COMMIT;"
  sqlite3 "$db" "UPDATE t SET b = b || '!' WHERE a % 3 = 0; DELETE FROM t WHERE a % 7 = 0;"
  sqlite3 "$db" "BEGIN; DELETE FROM t; ROLLBACK; SELECT count(*), sum(length(b)), sum(length(c)) FROM t;"
  sqlite3 "$db" "PRAGMA mmap_size=268435456; SELECT count(*) FROM t WHERE b LIKE '%!'; CREATE INDEX i ON t(b);"
  for i in 1 2 3 4 5; do sqlite3 "$db" "INSERT INTO t(b) VALUES('row $i'); SELECT max(a) FROM t;"; done
  sqlite3 "$db" "VACUUM; PRAGMA integrity_check;"
  sqlite3 "$db" ".dump" | sha256sum
done
sqlite3 wal.db ".backup copy.db"
sqlite3 copy.db "PRAGMA integrity_check; SELECT count(*) FROM t;"
# Two writing processes, in both kinds of journal.
for mode in delete wal; do
  db=two-$mode.db
  sqlite3 "$db" "PRAGMA journal_mode=$mode; CREATE TABLE t(who, n);"
  for who in a b; do
    (for n in $(seq 60); do echo "INSERT INTO t VALUES('$who', $n);"; done |
      sqlite3 -cmd '.timeout 30000' "$db") &
  done
  wait
  sqlite3 "$db" "SELECT who, count(*), sum(n) FROM t GROUP BY who ORDER BY who; PRAGMA integrity_check;"
done
