#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Smoke test of bench/testbed: up, status, down, and nothing left; also after a crash and a lost state
# file. Takes about 20 s; skipped (exit 77) without root, without loop devices, or when one is in use.
set -u
cd "$(dirname "$0")/.." || exit 1
export CAIRN_TESTBED_HDD_SIZE=256M
testbed=bench/testbed
state=/run/cairn-testbed
failures=0

skip() { echo "testbed_test: skipped: $1"; exit 77; }
check() { # WHAT COMMAND...
  local what=$1
  shift
  if "$@"; then echo "ok: $what"; else echo "FAILED: $what"; failures=$((failures + 1)); fi
}
number_of_loop() { losetup --list --noheadings --output MAJ:MIN,BACK-FILE |
  awk '/cairn-testbed-hdd.img/ {print $1}'; }
throttled() { cat /sys/fs/cgroup/blkio/blkio.throttle.*_device /sys/fs/cgroup/*/io.max 2>/dev/null |
  grep -q "^$1 "; }
nothing_left() {
  ! losetup --list | grep -q cairn-testbed-hdd && ! grep -q "$state/mnt/hdd" /proc/self/mounts &&
    ! throttled "$1" && [ "$(cat "/sys/class/bdi/$1/strict_limit" 2>/dev/null || echo 0)" = 0 ] &&
    ! ls /var/tmp/cairn-testbed-hdd.img /dev/shm/cairn-testbed-hdd.img >/dev/null 2>&1
}

if [ "$(id -u)" != 0 ]; then
  $testbed up hdd 2>/dev/null
  [ $? = 2 ] || { echo "FAILED: without root the exit status is 2"; exit 1; }
  skip "needs root"
fi
[ -e /dev/loop-control ] || skip "no loop devices here"
[ ! -e "$state" ] || skip "a testbed is up already"
trap '$testbed down hdd >/dev/null 2>&1' EXIT

check "up measures the rates and succeeds" $testbed up hdd
number=$(number_of_loop)
check "the mount is there" mountpoint -q $state/mnt/hdd
check "the throttle is there" throttled "$number"
check "status says up" bash -c "$testbed status | grep -q '^hdd  *up'"
check "a second up is harmless" $testbed up --no-verify hdd
check "down succeeds" $testbed down hdd
check "nothing is left after down" nothing_left "$number"
check "the state directory is gone" test ! -e $state

$testbed up --no-verify hdd >/dev/null && number=$(number_of_loop)
rm -f $state/state.json
check "down without a state file succeeds" $testbed down hdd
check "nothing is left after a lost state file" nothing_left "$number"

$testbed up hdd >/dev/null 2>&1 &
sleep 2 && number=$(number_of_loop)
kill -INT $! 2>/dev/null || true
kill -TERM $! && wait $!
check "nothing is left after an interrupted up" nothing_left "$number"

$testbed up hdd >/dev/null 2>&1 &
sleep 2 && number=$(number_of_loop)
kill -KILL $! && wait $! 2>/dev/null
check "down after a killed up succeeds" $testbed down hdd
check "nothing is left after a killed up" nothing_left "$number"
[ $failures = 0 ]
