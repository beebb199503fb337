# SPDX-License-Identifier: Apache-2.0
# needs: gcc
# timeout: 60
# ignore: static
# A static program is out of the preload's reach: it must find stored what was just written, and what it writes
# must be seen afterwards.
set -euo pipefail
cat >reader.c <<'C'
#include <stdio.h>
int main(int n, char** v) {
  long sum = 0; int c; FILE* f = fopen(v[1], "r"); if (!f) return 1;
  while ((c = getc(f)) != EOF) sum += c;
  fclose(f); f = fopen(v[2], "w"); fprintf(f, "%ld\n", sum); fclose(f); printf("%ld\n", sum); return 0; }
C
gcc -O1 -static -o static reader.c
head -c 3000000 "$INPUT/data.bin" >data.bin
./static data.bin sum.txt
cat sum.txt
echo more >>data.bin
./static data.bin sum.txt
cat sum.txt data.bin | sha256sum
