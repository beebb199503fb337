#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The long tests: ten million random operations against native runs, a hundred thousand kills (25,000 of clients on
# files that stay, as many on files that go, 50,000 of clients, service and keeper at crash points), many seeds of the
# suites. Nothing is fixed: the first seed is the clock, and is printed.
#
#   tests/soak.sh [--quick] [--seed N]      --quick: the same in about a minute
set -uo pipefail
here=$(readlink -f "${BASH_SOURCE[0]}")
cd "$(dirname "$here")/.."
quick=
seed=$(date +%s)
while [ $# -gt 0 ]; do
  case $1 in
    --quick) quick=1 ;;
    -h | --help) sed -n '4,8s/^# \{0,1\}//p' "$here"; exit ;;
    --seed) seed=${2:?--seed needs a number}; shift ;;
    *) echo "usage: tests/soak.sh [--quick] [--seed N]" >&2; exit 2 ;;
  esac
  shift
done
failed=()
part() {
  local name=$1 status=0
  shift
  echo "== $name: $*"
  "$@" || status=$?
  case $status in
    0) ;;
    77) echo "skipped $name" ;;
    *) failed+=("$name") ;;
  esac
}
echo "first seed $seed"
tier=$PWD/build/suites/soak-tier
mkdir -p "$tier"
if [ -n "$quick" ]; then
  # The suites of `./dev check` have most of these as tests of their own: here they show that the long form works.
  scripts=2 operations=4000 kills=100 suite_seeds=1 model_steps=3000 mode_seeds=1 mode_operations=300
  learner_events=500000 hostile_rounds=2 crash_kills=40 crash_seconds=25 power_cuts=300 selections=3000
else
  scripts=200 operations=50000 kills=25000 suite_seeds=50 model_steps=400000 mode_seeds=20 mode_operations=10000
  learner_events=100000000 hostile_rounds=500 crash_kills=50000 crash_seconds=86400 power_cuts=10000 selections=60000
fi
# Ten million operations in all without --quick: half of them with a file tier below the RAM tier.
part "model" env CAIRN_SEED="$seed" CAIRN_MODEL_STEPS=$model_steps build/release/tests/test_model --gtest_brief=1
part "what is learned takes no more memory" env CAIRN_SEED="$seed" CAIRN_LEARNER_EVENTS=$learner_events \
  build/release/tests/test_learner --gtest_brief=1
part "power cuts under the durable log" env CAIRN_SEED="$seed" CAIRN_POWER_CUTS=$power_cuts \
  build/release/tests/test_durable_log --gtest_filter='PowerCut.*' --gtest_brief=1
part "differential, small RAM tier" \
  python3 tests/differential/run.py --seed "$seed" --seeds $((scripts / 2)) \
  --ops $operations --ram 2M
part "differential, RAM and file tier" python3 tests/differential/run.py --seed $((seed + scripts)) \
  --seeds $((scripts / 2)) --ops $operations --ram 1M --tier "$tier:16M"
part "differential, every mode and policy" python3 tests/differential/run.py --configurations all \
  --seed $((seed + 2 * scripts)) --seeds $mode_seeds --ops $mode_operations --ram 1M
part "killed clients" python3 tests/faults/kill_clients.py --kills $kills --seed "$seed" --timeout 14400
part "crash points" python3 tests/faults/crash_points.py --kills "${CAIRN_SOAK_KILLS:-$crash_kills}" --jobs 4 \
  --seconds $crash_seconds --seed "$seed"
# 20,000 with each size of the tiers.
part "selections of datasets" python3 tests/arrays/selections.py --selections $selections --seed "$seed"
part "fsx" python3 tests/suites/run.py fsx --seed "$((seed % 100000))" --seeds $suite_seeds
part "hostile client" env CAIRN_SEED="$((seed % 1000000))" CAIRN_HOSTILE_ROUNDS=$hostile_rounds \
  build/release/tests/test_multiprocess_hostile_arena --gtest_brief=1
[ -n "$quick" ] || part "fuzzing" ./dev fuzz --seconds 3600
[ -n "$quick" ] || part "power cuts under sqlite and names" python3 tests/faults/power_cuts.py --cuts 100 --seed "$seed"
[ -n "$quick" ] || part "deaths of the machine" python3 tests/faults/machine_death.py --rounds 300 --seed "$seed"
[ -n "$quick" ] || part "failing stores" python3 tests/faults/backing_errors.py
[ -n "$quick" ] || part "programs" python3 tests/programs/run.py
[ -n "$quick" ] || part "tests of array packages" env CAIRN_ARRAY_WAYS=all \
  ctest --test-dir build/release -R '^arrays_.*_suite$' --output-on-failure
rmdir "$tier" 2>/dev/null || rm -rf "$tier"
if [ ${#failed[@]} -gt 0 ]; then
  printf 'soak failed: %s\n' "${failed[@]}"
  exit 1
fi
echo "soak passed"
