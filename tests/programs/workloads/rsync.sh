# SPDX-License-Identifier: Apache-2.0
# needs: rsync
# timeout: 60
set -euo pipefail
# Into the managed directory, twice: the second run must find nothing to do.
rsync -a "$INPUT/tree/" tree/
rsync -a --itemize-changes "$INPUT/tree/" tree/
echo "second run done"
diff -r "$INPUT/tree" tree
rsync -a --checksum --itemize-changes "$INPUT/tree/" tree/
# Out of it.
rsync -a tree/ "$SCRATCH/out/"
rsync -a --itemize-changes tree/ "$SCRATCH/out/"
diff -r tree "$SCRATCH/out"
# Inside it, with changes, deltas, hard links, in place and append.
rsync -aH tree/ copy/
rsync -aH --itemize-changes tree/ copy/
cp "$INPUT/data.bin" big.bin
touch -d '2010-10-10 10:10:10.25' big.bin
rsync -a --no-whole-file big.bin other.bin
printf 'changed' | dd of=big.bin bs=1 seek=3000000 conv=notrunc status=none
touch -d '2010-10-11 10:10:10.75' big.bin
rsync -a --no-whole-file --itemize-changes big.bin other.bin
cmp big.bin other.bin
head -c 100000 "$INPUT/data.bin" >>big.bin
touch -d '2010-10-12 10:10:10' big.bin
rsync -a --inplace --no-whole-file --itemize-changes big.bin other.bin
cmp big.bin other.bin
head -c 100000 "$INPUT/data.bin" >>big.bin
touch -d '2010-10-13 10:10:10' big.bin
rsync -a --append-verify --itemize-changes big.bin other.bin
cmp big.bin other.bin
rm "tree/part0/folder 0/file2.bin"
rsync -a --delete --itemize-changes tree/ copy/
rsync -aS "$INPUT/sparse.bin" sparse.bin
cmp "$INPUT/sparse.bin" sparse.bin
stat -c '%n %s %y' big.bin other.bin sparse.bin
