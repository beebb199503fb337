# SPDX-License-Identifier: Apache-2.0
# needs: gcc
# ignore: reader
# Functions that libc offers under names of long ago read what has just been written, as their present names do.
set -euo pipefail
cat >"$SCRATCH/reader.c" <<'SOURCE'
#include <stdio.h>
extern FILE* _IO_fopen(const char*, const char*);
int main(void) {
  FILE* writer = fopen("file", "w");
  fputs("just written\n", writer);
  fflush(writer);
  char line[32] = "nothing\n";
  FILE* reader = _IO_fopen("file", "r");
  fgets(line, sizeof line, reader);
  fputs(line, stdout);
  return fclose(reader) | fclose(writer);
}
SOURCE
gcc -o reader "$SCRATCH/reader.c"
./reader
