#!/usr/bin/env bash
# The long form of the tests of checkpoints and stops: 2,000 kills, 200 signals, 20,000 bit flips, and a resumed run from each of
# 19 windows with both optimizers on 1, 2 and 4 ranks. Prints what each part found; ends with 1 when one failed.
#
#   tests/long/state.sh BUILD [JOBS]     BUILD: a build folder with the tests; JOBS: runs at a time (default: half the processors)
set -uo pipefail
build=$(realpath "$1")
jobs=${2:-$((($(nproc) + 1) / 2))}
source=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
logs=$(mktemp -d)
export TALLY_PROGRAM=$build/bin/tally TALLY_SOURCE=$source

# part NAME TEST: one line of result, and the log when it failed.
part() {
  local name=$1
  shift
  if "$@" >"$logs/$name.log" 2>&1; then
    grep -hE "interruptions in|^OK|PASSED" "$logs/$name.log" | tr '\n' ' ' | sed "s/^/$name: /; s/$/\n/"
  else
    echo "$name FAILED:"
    tail -40 "$logs/$name.log"
    return 1
  fi
}

integration() { (cd "$source/tests/integration" && python3 -B "$@"); }

kills_each=$(((2000 + jobs - 1) / jobs))
signals_each=$(((200 + jobs - 1) / jobs))
tasks=()
for ((job = 1; job <= jobs; ++job)); do
  (
    export TALLY_SEED=$job TALLY_KILLS=$kills_each TALLY_SIGNALS=$signals_each
    failed=0
    part "kills-$job" integration interrupted_test.py Interrupted.test_kills || failed=1
    part "signals-$job" integration interrupted_test.py Interrupted.test_signals || failed=1
    exit $failed
  ) &
  tasks+=($!)
done
TALLY_BIT_FLIPS=20000 part flips "$build/bin/checkpoint_test" --gtest_filter='*EveryBitFlip*' &
tasks+=($!)
TALLY_EVERY_WINDOW=1 part windows integration resume_test.py Resume.test_every_window_resumes_to_the_same_bytes &
tasks+=($!)

failed=0
for task in "${tasks[@]}"; do wait "$task" || failed=1; done
rm -rf "$logs"
exit $failed
