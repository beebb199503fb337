# SPDX-License-Identifier: Apache-2.0
#
# Sourced by the workloads: `phase TEXT COMMAND...` runs one step, shows it, and notes its seconds.
# `cold_phase` first drops the kernel's page cache when DEMO_DROP_CACHES=1 (root only), in the direct
# run and under Cairn alike: the step then finds what a program finds that starts later, when the
# machine's memory went to others. The time of the dropping itself is noted apart and never counted.
#
# DEMO_PHASES names the file of notes: "phase|drop <tab> seconds <tab> text" per line.
set -euo pipefail

note() { # kind started text: appends the seconds since `started` (EPOCHREALTIME, microseconds)
  local ended=${EPOCHREALTIME/[.,]/}
  local microseconds=$((ended - $2))
  printf '%s\t%d.%06d\t%s\n' "$1" $((microseconds / 1000000)) $((microseconds % 1000000)) "$3" \
    >>"$DEMO_PHASES"
}

phase() {
  local text=$1 started=${EPOCHREALTIME/[.,]/}
  shift
  "$@"
  note phase "$started" "$text"
  printf 'demo:   %7.2f s  %s\n' "$(tail -n 1 "$DEMO_PHASES" | cut -f 2)" "$text"
}

cold_phase() {
  if [ "${DEMO_DROP_CACHES:-0}" = 1 ]; then
    local started=${EPOCHREALTIME/[.,]/}
    echo 1 >/proc/sys/vm/drop_caches
    note drop "$started" "$1"
  fi
  phase "$@"
}
