# SPDX-License-Identifier: Apache-2.0
# needs: gcc make ar
# timeout: 120
# ignore: library/program library/static *.o *.a *.so*
# A generated library with a plugin.
set -euo pipefail
mkdir library
cd library
for i in $(seq 30); do
  printf '#include "all.h"\nint f%d(int x) { return x * %d + g(x); }\n' "$i" "$i" >"f$i.c"
done
{ echo 'static inline int g(int x) { return x ^ 5; }'; for i in $(seq 30); do echo "int f$i(int x);"; done; } >all.h
{ echo '#include <stdio.h>'; echo '#include <dlfcn.h>'; echo '#include "all.h"'; echo 'int main(void) { int s = 0;'
  for i in $(seq 30); do echo "s += f$i($i);"; done
  echo 'void* p = dlopen("./plugin.so", RTLD_NOW); if (!p) { puts(dlerror()); return 1; }'
  echo 'int (*h)(int) = (int (*)(int))dlsym(p, "h"); printf("%d %d\n", s, h(s)); return 0; }'; } >main.c
echo 'int h(int x) { return x + 1000000; }' >plugin.c
cat >Makefile <<'MAKE'
OBJECTS := $(patsubst %.c,%.o,$(wildcard f*.c))
all: program plugin.so
program: main.o liball.a
	gcc -o $@ main.o liball.a -ldl
liball.a: $(OBJECTS)
	ar rcs $@ $^
plugin.so: plugin.c
	gcc -shared -fPIC -o $@ $<
%.o: %.c all.h
	gcc -O1 -g -MMD -c -o $@ $<
MAKE
make -s -j2
./program
make -s -j2 -q && echo "up to date"
touch -d '2031-01-01' f3.c
make -j2 | grep -c gcc
./program
nm liball.a | grep -c ' T '
strip program
./program
gcc -static -o static main.c f*.c -ldl 2>/dev/null && ./static | cut -d' ' -f1
