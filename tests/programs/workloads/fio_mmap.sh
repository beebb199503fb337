# SPDX-License-Identifier: Apache-2.0
# needs: fio
# timeout: 90
# output: none
# volatile: *
# Random reads and writes whose every block carries a checksum, through fio's mmap engine.
set -euo pipefail
verify() {
  fio --name="$1" --directory=. --size=24m --bsrange=4k-256k --ioengine=mmap  --verify=crc32c --verify_fatal=1 \
    --do_verify=1 --numjobs=2 --end_fsync=1 --randrepeat=1 --group_reporting --output="$SCRATCH/$1.log" "${@:2}" ||
    { cat "$SCRATCH/$1.log" >&2; return 1; }
}
verify random --rw=randrw
verify sequential --rw=write
verify randomwrite --rw=randwrite --fsync=64
