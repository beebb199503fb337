# SPDX-License-Identifier: Apache-2.0
# needs: gcc flock env dash setsid
# timeout: 90
# Open descriptions on their way through fork, vfork, exec, spawn and libc's own starts.
set -uo pipefail
echo "-- one offset for a group of commands"
(echo a; /bin/echo b; sh -c 'echo c') >f1; cat f1
{ echo d; /bin/echo e; dash -c 'echo f; /bin/echo g'; } >>f1; cat f1
echo "-- a descriptor of the shell's"
exec 3>f3
echo builtin >&3; /bin/echo child >&3; (echo subshell >&3; /bin/echo both >&3); env -i /bin/echo cleaned >&3
env -i sh -c 'echo "deep cleaned" >&3; /bin/echo deeper >&3'
exec 3>&-; cat f3
echo "-- reading on where the other stopped"
seq 1 5 >f4
exec 4<f4
read -r x <&4; echo "bash $x"; sh -c 'read y; echo "sh $y"' <&4
/usr/bin/python3 -c 'import os; os.lseek(0, 4, 0)' <&4; cat <&4
exec 4<&-
echo "-- read and write"
exec 5<>f5; echo hello >&5; sh -c 'echo more >&5'; exec 5>&-; cat f5
echo "-- flock on an inherited descriptor"
exec 9>lock; flock 9; flock -n lock -c true || echo "held"
sh -c 'flock -u 9'; flock -n lock -c 'echo "free"'; exec 9>&-
echo "-- exec in place, exec that fails"
(exec 6>f6; exec /bin/echo replaced >&6); cat f6
(exec 6>>f6; exec ./no-such-program >&6) 2>/dev/null
bash -c 'exec 6>>f6; shopt -s execfail; exec ./none 2>/dev/null; echo "still here" >&6'; cat f6
echo "-- background children outlive their parent"
sh -c '(sleep 0.3; echo late) >f7 & exit 0'; sleep 1; cat f7
setsid sh -c 'echo session >f8' ; cat f8
cat >calls.c <<'C'
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wchar.h>
static void show(const char* path) {
  char line[200];
  FILE* f = fopen(path, "r");
  printf("%s:", path);
  while (f && fgets(line, sizeof line, f)) printf(" %s", strtok(line, "\n"));
  puts("");
  if (f) fclose(f);
  fflush(stdout);
}
static void finish(pid_t child) { int status; waitpid(child, &status, 0); if (status) printf("status %x\n", status); }
int main(void) {
  FILE* stream = fopen("c1", "w"); fprintf(stream, "stream\n"); fflush(stream);
  system("echo system >&3"); popen("true", "r");
  char command[80]; int fd = fileno(stream);
  sprintf(command, "echo system >&%d", fd); system(command);
  sprintf(command, "echo popen >&%d", fd); pclose(popen(command, "w"));
  fprintf(stream, "end\n"); fclose(stream); show("c1");

  fd = open("c2", O_CREAT | O_RDWR | O_TRUNC, 0644);
  pid_t child = vfork();
  if (child == 0) { dup2(fd, 1); close(fd); execlp("echo", "echo", "vfork", (char*)0); _exit(9); }
  finish(child); write(fd, "parent\n", 7);
  child = vfork();
  if (child == 0) { dup2(fd, 1); execl("/no/such", "x", (char*)0); _exit(0); }
  finish(child); write(fd, "after failure\n", 14);
  child = fork();
  if (child == 0) { write(fd, "fork\n", 5); int other = dup(fd);
    lseek(other, 0, SEEK_END); write(other, "dup\n", 4); _exit(0); }
  finish(child);
  posix_spawn_file_actions_t actions; posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, fd, 1);
  posix_spawn_file_actions_addopen(&actions, 7, "c3", O_WRONLY | O_CREAT | O_TRUNC, 0644);
  posix_spawn_file_actions_addclose(&actions, fd);
  char* argv[] = {"sh", "-c", "echo spawned; echo opened >&7", 0};
  printf("spawn %d\n", posix_spawnp(&child, "sh", &actions, 0, argv, environ)); finish(child);
  char* none[] = {"none", 0};
  printf("spawn of nothing %d\n", posix_spawnp(&child, "./no-such", &actions, 0, none, environ));
  posix_spawn_file_actions_destroy(&actions);
  write(fd, "last\n", 5); close(fd); show("c2"); show("c3");

  fd = open("c4", O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
  child = fork();
  if (child == 0) { char number[20]; sprintf(number, "echo x >&%d", fd);
    execl("/bin/sh", "sh", "-c", number, (char*)0); _exit(9); }
  int status; waitpid(child, &status, 0); printf("close-on-exec %d\n", WEXITSTATUS(status)); close(fd); show("c4");

  fd = open("c5", O_CREAT | O_WRONLY, 0644); write(fd, "before\n", 7);
  for (int other = 3; other < 1024; ++other) if (other != fd) close(other);
  closefrom(fd + 1); close_range(fd + 1, ~0U, 0);
  write(fd, "closed the rest\n", 16); close(fd); show("c5");

  stream = freopen("c6", "w", stdout); printf("to a file\n"); wprintf(L"no\n"); fflush(stdout);
  system("echo child of freopen"); printf("again\n"); fflush(stdout);
  if (fork() == 0) { printf("child at exit\n"); exit(0); }
  wait(0); freopen("/dev/tty", "w", stdout) || freopen("/dev/null", "w", stdout);
  stream = fopen("c7", "w"); fwide(stream, 1); fwprintf(stream, L"wide %d\n", 5); fclose(stream);
  fd = open("c8", O_CREAT | O_WRONLY, 0644); dup2(fd, 2); close(fd);
  errno = ENOENT; perror("perror"); dprintf(2, "dprintf\n");
  stream = fopen("c9", "a"); fprintf(stream, "%ld\n", ftell(stream)); fclose(stream);
  stream = fopen("c9", "a"); fprintf(stream, "%ld\n", ftell(stream)); fclose(stream);
  stream = fopen("c9", "r+"); char word[10]; fgets(word, 10, stream);
  fseek(stream, 0, SEEK_CUR); fputs("X", stream); fclose(stream);
  if (fork() == 0) { daemon(1, 0); FILE* log = fopen("c10", "w"); fprintf(log, "daemon\n"); exit(0); }
  wait(0); usleep(500000);
  stream = fopen("c11", "w"); fputs("flushed by exit", stream);
  return 0;
}
C
gcc -w -o calls calls.c && ./calls 3>f10; echo "status $?"
for f in f10 c6 c7 c8 c9 c10 c11; do echo "$f:"; cat $f; echo; done
echo "-- python"
/usr/bin/python3 - <<'P'
import os, subprocess, sys
with open("p1", "w") as f:
    subprocess.run(["echo", "one"], stdout=f); f.write("buffered\n"); f.flush()
    subprocess.run("echo two; echo three >&2", shell=True, stdout=f, stderr=subprocess.STDOUT)
    subprocess.run(["echo", "closed"], stdout=f, close_fds=False)
    os.system("echo system"); f.write("end\n")
print(open("p1").read())
pid = os.posix_spawn("/bin/sh", ["sh", "-c", "echo spawned; echo err >&2"], os.environ, file_actions=[
    (os.POSIX_SPAWN_OPEN, 1, "p2", os.O_WRONLY | os.O_CREAT, 0o644), (os.POSIX_SPAWN_DUP2, 1, 2)])
os.waitpid(pid, 0); print(open("p2").read())
numbers = range(40, 72)  # all of them append, for a program that leaves the run
program = "import os\nfor n in range(40, 72): os.write(n, b'%d\\n' % n)"
pid = os.posix_spawn("/usr/bin/python3", ["python3", "-c", program], {**os.environ, "CAIRN_BYPASS": "1"}, file_actions=[
    (os.POSIX_SPAWN_OPEN, n, f"q{n}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644) for n in numbers])
print(os.waitpid(pid, 0)[1], [open(f"q{n}").read() for n in numbers] == [f"{n}\n" for n in numbers])
print(subprocess.run(["cat"], stdin=open("p1"), capture_output=True, env={}).stdout)
fd = os.open("p3", os.O_RDWR | os.O_CREAT); os.set_inheritable(fd, True)
subprocess.run(["sh", "-c", f"echo passed >&{fd}"], pass_fds=[fd]); os.write(fd, b"mine\n")
print(os.pread(fd, 100, 0)); r = os.popen(f"echo popen >&{fd}; echo said"); print(r.read()); r.close()
print(os.pread(fd, 100, 0), os.lseek(fd, 0, 1))
P
echo "-- a library and a program just built"
echo 'int answer(void){return 42;}' >lib.c; gcc -shared -fPIC -o libanswer.so lib.c
/usr/bin/python3 -c 'import ctypes; print(ctypes.CDLL("./libanswer.so").answer())'
echo 'int answer(void){return 43;}' >lib.c
echo 'int answer(void); int main(void){return answer();}' >main.c; gcc -o linked main.c -L. -lanswer
rm libanswer.so; gcc -shared -fPIC -o libanswer.so lib.c
LD_LIBRARY_PATH=. ./linked; echo $?
printf '#!./linked\n' >script; chmod +x script; LD_LIBRARY_PATH=. ./script; echo $?
rm -f calls libanswer.so linked
