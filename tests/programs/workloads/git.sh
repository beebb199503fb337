# SPDX-License-Identifier: Apache-2.0
# needs: git
# timeout: 120
# ignore: */index */.git/logs/* *.pack *.idx *.rev *.git/objects/* */ORIG_HEAD */config */.git */gitdir
# The directory's own path stands in some files of git.
# volatile: */.git/gc.pid */.git/objects/info/* *.git/objects/??/*
set -euo pipefail
export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@b
export GIT_AUTHOR_DATE='2020-01-01T00:00:00Z' GIT_COMMITTER_DATE='2020-01-01T00:00:00Z' GIT_CONFIG_NOSYSTEM=1
git init -q -b main work
cd work
cp -r "$INPUT/tree/." .
git add -A
git commit -q -m first
git status --short
for i in 1 2 3 4 5 6 7 8; do
  head -c $((i * 1000)) "$INPUT/words.txt" >>"part0/folder 0/file1.txt"
  cp "$INPUT/words.txt" "words$i.txt" && sed -i "${i}s/^/edit /" "words$i.txt"
  git add -A
  git commit -q -m "change $i"
done
git checkout -q -b side HEAD~4
echo side >side.txt
git add side.txt
git commit -q -m side
git checkout -q main
git merge -q --no-edit side
git log --oneline | sed 's/^[0-9a-f]* //'
git diff --stat HEAD~3 | tail -1
git tag v1
git stash list
echo dirty >>side.txt
git stash -q
git stash pop -q
git checkout -q -- side.txt
git gc -q --aggressive --prune=now
git fsck --full --strict
git repack -q -a -d
git verify-pack .git/objects/pack/*.idx
git rev-parse HEAD HEAD~2 v1
cd ..
git clone -q --no-hardlinks work clone
git clone -q --bare work bare.git
git -C clone fsck --full
git -C clone log -1 --format=%H
echo more >clone/more.txt
git -C clone add more.txt
git -C clone commit -q -m more
git -C clone push -q ../bare.git main
git -C bare.git log -1 --format=%H
git -C work pull -q ../bare.git main
git -C work worktree add -q ../tree2 side
git -C work archive --format=tar HEAD | sha256sum
git -C work grep -c edit -- 'words*.txt'
git -C work status --short
diff -r --exclude=.git work clone
