# SPDX-License-Identifier: Apache-2.0
# needs: setpriv
# timeout: 60
# A program that runs as another user, which the node would refuse, finds the bytes just written, and its own
# writes are seen afterwards. (Names are relative: the directories above are not the other user's to enter.)
set -euo pipefail
as_other() {
  if [ "$(id -u)" = 0 ]; then setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; else "$@"; fi
}
chmod 777 .
head -c 300000 "$INPUT/data.bin" >own
chmod 644 own
as_other cat own | sha256sum
as_other sh -c 'wc -c <own; echo from another user >theirs; cat theirs'
echo "and more" >>own
as_other tail -c 20 own | sha256sum
cat theirs
