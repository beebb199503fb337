# SPDX-License-Identifier: Apache-2.0
# needs: gzip zstd
# timeout: 60
# ignore: *.gz
set -euo pipefail
cp -p "$INPUT/words.txt" "$INPUT/data.bin" .
gzip -k -6 words.txt
gzip -t words.txt.gz
gzip -dc words.txt.gz | cmp - words.txt
zstd -q -k -3 words.txt data.bin
zstd -q -t words.txt.zst data.bin.zst
zstd -q -d words.txt.zst -o words.out
cmp words.txt words.out
zstd -q -T2 -10 words.txt -o words10.zst
zstd -q -dc words10.zst | sha256sum
gzip data.bin
stat -c '%n %Y' data.bin.gz words.txt.zst
gunzip data.bin.gz
stat -c '%n %s %y' data.bin
cmp data.bin "$INPUT/data.bin"
if command -v xz >/dev/null; then
  xz -k -1 words.txt && xz -dc words.txt.xz | cmp - words.txt && rm words.txt.xz
fi
if command -v bzip2 >/dev/null; then
  bzip2 -k words.txt && bzip2 -t words.txt.bz2 && bzip2 -dc words.txt.bz2 | cmp - words.txt && rm words.txt.bz2
fi
sha256sum words.txt data.bin
