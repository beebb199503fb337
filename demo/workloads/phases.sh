# SPDX-License-Identifier: Apache-2.0
#
# Sourced by the workloads: `phase TEXT COMMAND...` runs one step, shows it, and notes its seconds.
# `cold_phase` first has the kernel drop its cached pages of every file on the store, in the direct run
# and under Cairn alike: the step then finds what a program finds that starts later, when the machine's
# memory went to others. compare.py does it from outside the run, asked through two pipes; the time it
# takes is noted apart.
#
# DEMO_PHASES names the file of notes: "phase|drop <tab> seconds <tab> text" per line.
# DEMO_PAGES names the two pipes, with .drop and .dropped added.
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
  local started=${EPOCHREALTIME/[.,]/} answer
  echo drop >"$DEMO_PAGES.drop"
  read -r answer <"$DEMO_PAGES.dropped"
  note drop "$started" "$1"
  [ "$answer" = dropped ] || return 1
  phase "$@"
}
