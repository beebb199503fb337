# SPDX-License-Identifier: Apache-2.0
# needs: find xargs grep sed awk
# timeout: 60
set -euo pipefail
cp -a "$INPUT/tree" tree
find tree -type f | sort | sha256sum
find tree -printf '%P %y %s %m %n %T@\n' | grep -v ' d ' | sort | sha256sum
find tree -name '*.txt' -size +4k | sort | wc -l
find tree -newermt '2008-01-10' -type f | sort | sha256sum
find tree -type f -empty | sort
find tree -samefile "tree/part0/folder 0/hard.txt" | sort
find tree -type f -print0 | xargs -0 -n 20 -P 4 sha256sum | sort | sha256sum
find tree -type f -name '*.txt' -exec sed -i 's/cairn/mountain/g' {} +
grep -rl mountain tree | sort | wc -l
grep -rc bucket tree --include='*.txt' | sort | sha256sum
find tree -type f -name '*.bin' -delete
find tree -type d -empty | wc -l
awk 'NR % 1000 == 0 { print FILENAME; print $1 > "awk.out"; print $2 >> "awk.append" }' "$INPUT/words.txt" | wc -l
sed -n -e 's/tier/TIER/w sed.out' "$INPUT/words.txt"
grep -c TIER sed.out
find . -newer sed.out -type f | wc -l
