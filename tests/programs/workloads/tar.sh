# SPDX-License-Identifier: Apache-2.0
# needs: tar gzip zstd
# timeout: 60
# ignore: *.tar.gz *.tar.zst *.tar
set -euo pipefail
cp -a "$INPUT/tree" tree
tar cf tree.tar tree
tar tvf tree.tar | sha256sum
mkdir out1 out2 out3 out4
tar xf tree.tar -C out1
diff -r tree out1/tree
tar czf tree.tar.gz tree
tar xzf tree.tar.gz -C out2
diff -r tree out2/tree
tar --zstd -cf tree.tar.zst tree
tar --zstd -xf tree.tar.zst -C out3
diff -r tree out3/tree
cp --sparse=always "$INPUT/sparse.bin" sparse.bin
tar --sparse -cf sparse.tar sparse.bin
tar xf sparse.tar -C out4
cmp sparse.bin out4/sparse.bin
tar rf tree.tar sparse.bin
tar df tree.tar
tar --delete -f tree.tar "tree/part1/folder 1/file1.txt"
tar tf tree.tar | wc -l
echo changed >>"tree/part0/folder 0/file1.txt"
tar df tree.tar 2>&1 | sed 's/^tar: //' | sort | head -5 || true
tar cf - tree | tar xf - -C out4
diff -r tree out4/tree
find out1 -type f -name '*.txt' -printf '%p %s %T@ %m %n\n' | sort | sha256sum
