# SPDX-License-Identifier: Apache-2.0
# needs: cp mv dd sort split truncate cat tee touch ln du cmp shuf
# timeout: 60
set -eu
cp "$INPUT/data.bin" plain.bin
cp -p "$INPUT/data.bin" kept.bin
cp -a "$INPUT/tree" tree
cp --sparse=always "$INPUT/sparse.bin" sparse.bin
cp --reflink=auto plain.bin again.bin
cp -p kept.bin kept-again.bin
cmp plain.bin "$INPUT/data.bin"
cmp kept-again.bin plain.bin
cmp -l plain.bin sparse.bin | head -5 | wc -l
mv again.bin moved.bin
mv moved.bin tree/
mv "tree/part0" part0
dd if=plain.bin of=dd.bin bs=12345 skip=7 count=300 status=none
dd if=plain.bin of=dd.bin bs=4096 seek=10 count=3 conv=notrunc status=none
dd if=plain.bin of=direct.bin bs=65536 count=16 oflag=direct iflag=fullblock status=none
dd if=direct.bin bs=1M iflag=direct status=none | sha256sum
dd if=/dev/zero of=zeros.bin bs=64K count=20 conv=fsync status=none
dd if=plain.bin bs=1 skip=1048570 count=20 status=none | od -An -tx1
sort -S 1M -T . "$INPUT/words.txt" >sorted.txt
sort -S 1M -T . --parallel=2 -k3,3 -u -o unique.txt sorted.txt
sort -S 100K -T . -m sorted.txt unique.txt | sha256sum
shuf --random-source=plain.bin sorted.txt | head -100 >shuffled.txt
split -b 1000000 plain.bin piece.
cat piece.* | cmp - plain.bin
split -l 7000 --additional-suffix=.txt sorted.txt lines.
cat lines.*.txt | cmp - sorted.txt
truncate -s 100001 zeros.bin
truncate -s +5000 zeros.bin
truncate -s 3M grown.bin
wc -c zeros.bin grown.bin
cat sorted.txt unique.txt | tee tee1.txt tee2.txt | md5sum
cat sorted.txt | tee -a tee1.txt >/dev/null
head -c 1000 plain.bin >>tee2.txt
tail -c 1000 plain.bin >>tee2.txt
tail -n 5 sorted.txt
tac unique.txt | head -3
touch -d '2011-03-04 05:06:07.123456789' dated.txt
echo text >>dated2.txt && touch -d '2012-01-01 00:00:00.5' dated2.txt
touch -r dated.txt referenced.txt
stat -c '%n %s %Y %y %h %a %F' dated.txt dated2.txt referenced.txt kept.bin
ln plain.bin hard.bin
ln -s plain.bin soft.bin
echo tail >>hard.bin
stat -c '%n %s %h' plain.bin hard.bin
stat -L -c '%s' soft.bin
du -b --apparent-size -s tree part0
install -m 750 plain.bin installed.bin
chmod 600 installed.bin
uniq -c unique.txt | head -2
comm -12 sorted.txt unique.txt | wc -l
join <(head -50 sorted.txt) <(head -50 sorted.txt) | wc -l
paste lines.aa.txt lines.ab.txt | sha256sum
od -An -c sorted.txt | head -3
sha256sum plain.bin kept.bin sparse.bin dd.bin tree/moved.bin
rm -r part0
rm hard.bin
unlink shuffled.txt
shred -n 1 -z --random-source="$INPUT/data.bin" tee2.txt
ls -l --time-style=+%s dated.txt kept.bin | awk '{print $5, $6, $7}'
ls tree/*
