# SPDX-License-Identifier: Apache-2.0
#
# Sourced by the workloads: `phase TEXT COMMAND...` runs one step, shows it, and notes its seconds.
# `cold_phase` first has the kernel drop its cached pages of every file on the store, in the direct run
# and under Cairn alike: the step then finds what a program finds that starts later, when the machine's
# memory went to others. compare.py does it from outside the run, asked through two pipes; the time it
# takes is in no step.
#
# DEMO_PHASES names the file of notes: "seconds <tab> text" per line.
# DEMO_PAGES names the two pipes, with .drop and .dropped added.
set -euo pipefail

phase() {
  local text=$1 started=${EPOCHREALTIME/[.,]/} microseconds seconds
  shift
  "$@"
  microseconds=$((${EPOCHREALTIME/[.,]/} - started))
  printf -v seconds '%d.%06d' $((microseconds / 1000000)) $((microseconds % 1000000))
  printf '%s\t%s\n' "$seconds" "$text" >>"$DEMO_PHASES"
  printf 'demo:   %7.2f s  %s\n' "$seconds" "$text"
}

cold_phase() {
  local answer
  echo drop >"$DEMO_PAGES.drop"
  read -r answer <"$DEMO_PAGES.dropped"
  [ "$answer" = dropped ] || return 1
  phase "$@"
}
