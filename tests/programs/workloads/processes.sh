# SPDX-License-Identifier: Apache-2.0
# needs: xargs
# timeout: 90
# Hundreds of short processes that hand files to each other.
set -euo pipefail
for i in $(seq 60); do
  head -c $((i * 700)) "$INPUT/data.bin" >"in$i"
  cat "in$i" "in$i" >"twice$i"
  mv "twice$i" "out$i"
  [ "$(stat -c %s "out$i")" = $((i * 1400)) ] || echo "size of out$i is $(stat -c %s "out$i")"
done
ls in* | xargs -n 1 -P 8 -I{} sh -c 'sha256sum <{} >{}.sum; rm {}'
cat in*.sum | sha256sum
seq 200 | xargs -n 1 -P 8 sh -c 'echo $1 >f$1.tmp && mv f$1.tmp f$1' sh
cat f[0-9]* | sort -n | sha256sum
