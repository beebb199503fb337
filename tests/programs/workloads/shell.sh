# SPDX-License-Identifier: Apache-2.0
# needs: flock
# timeout: 60
set -eu
echo one >a.txt
echo two >>a.txt
cat <a.txt >b.txt
{ echo grouped; cat a.txt; } >c.txt 2>&1
cat >here.txt <<'TEXT'
a here document
of two lines
TEXT
cat <<<"a here string" >>here.txt
exec 3>three.txt
echo first >&3
(echo subshell >&3)
bash -c 'echo child >&3'
printf 'more\n' >&3
exec 3>&-
cat three.txt
exec 4<a.txt
read -r line <&4
echo "read $line"
(read -r line <&4 && echo "subshell read $line")
if read -r line <&4; then echo "unexpected $line"; else echo "end of file, offset shared"; fi
exec 4<&-
exec 5<>both.txt
echo hello >&5
exec 5<&-
exec 6<both.txt
cat <&6
exec 6<&-
seq 100000 | grep 7 | sort -rn | head -20000 | tee numbers.txt | wc -l
sort -n numbers.txt | uniq | md5sum
while read -r number; do [ $((number % 500)) = 7 ] && echo "$number"; done <numbers.txt >loop.txt || true
wc -l <loop.txt
for i in 1 2 3 4 5 6 7 8; do echo "line $i" >>appended.txt & done
wait
sort appended.txt
rm appended.txt
# Appending by processes at once: no record may be lost or torn.
for who in 1 2 3 4; do
  (for i in $(seq 200); do echo "writer $who record $i of two hundred"; done >>records.txt) &
done
wait
sort records.txt | sha256sum
rm records.txt
# A counter under flock(1).
echo 0 >counter
increment() {
  for _ in 1 2 3 4 5 6 7 8 9 10; do
    (flock 9; n=$(cat counter); echo $((n + 1)) >counter) 9>lock
  done
}
increment & increment & increment &
wait
cat counter
flock -n lock -c 'flock -n lock -c true || echo "held"'
diff <(sort a.txt) <(sort b.txt) && echo same
mkfifo pipe
cat a.txt >pipe &
cat pipe
wait
rm pipe
printf '#!/bin/sh\necho "a script just written, $1"\n' >script.sh
chmod +x script.sh
./script.sh argument
set -o noclobber
(echo clobber >a.txt) 2>/dev/null || echo "noclobber held"
(cd / && echo outside >"$OLDPWD/from-outside.txt")
: >empty.txt
[ -s empty.txt ] || echo "empty"
[ a.txt -nt empty.txt ] || echo "older"
mapfile -t lines <numbers.txt
echo "${#lines[@]}"
printf '%s\n' "$(<here.txt)"
dash -c 'echo dash >d.txt; cat <d.txt; exec 3<d.txt; read x <&3; echo $x'
