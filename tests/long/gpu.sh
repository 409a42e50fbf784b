#!/usr/bin/env bash
# What can only be seen on GPUs: parity, training and a lost rank, over NCCL with a GPU a rank and over Gloo with both ranks on one GPU.
#
#   gpu.sh PROGRAM RECIPES [SEEDS]      in an empty folder; needs one GPU, and two for the NCCL part
set -uo pipefail
tally=$1 recipes=$2 seeds=${3:-3}
here=$(dirname "${BASH_SOURCE[0]}")
gpus=$(nvidia-smi --list-gpus | wc -l)
failures=0

expect() {  # expect CODE COMMAND...
  local wanted=$1 code=0
  shift
  printf '\n$ %s\n' "$*"
  local start=${EPOCHREALTIME/./}
  "$@" || code=$?
  printf '(exit code %d after %d ms)\n' "$code" "$(((${EPOCHREALTIME/./} - start) / 1000))"
  if [[ $code -ne $wanted ]]; then
    printf 'FAILED: exit code %d was expected\n' "$wanted"
    failures=$((failures + 1))
  fi
}

lose_a_rank() {  # lose_a_rank SIGNAL ARGUMENTS...: the signal hits the last rank once training runs
  local signal=$1
  shift
  "$tally" train "$recipes/correct.toml" --continuous --set train.updates=100000 --set run.timeout=10 "$@" &
  local launcher=$!
  for _ in $(seq 600); do
    [[ -s outputs/correct/metrics.jsonl ]] && break
    sleep 0.1
  done
  kill -"$signal" "$(pgrep -P "$launcher" | tail -n 1)"
  wait "$launcher"
}

transports() {
  expect 0 "$tally" compare "$@"
  expect 0 "$here/parity_seeds.py" "$tally" "$recipes" --seeds "$seeds" "$@"
  expect 0 "$tally" train "$recipes/correct.toml" --continuous "$@"
  tail -n 1 outputs/correct/metrics.jsonl
  rm -f outputs/correct/metrics.jsonl
  expect 4 lose_a_rank KILL "$@"
  rm -f outputs/correct/metrics.jsonl
  expect 4 lose_a_rank STOP "$@"
}

nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
expect 0 "$tally" doctor
expect 0 "$tally" prepare --json
if [[ $gpus -ge 2 ]]; then
  printf '\n== NCCL, a GPU a rank\n'
  expect 0 "$tally" doctor --dual
  transports
fi
printf '\n== Gloo on GPU tensors, both ranks on one GPU\n'
export CUDA_VISIBLE_DEVICES=0
transports
if pgrep -x tally; then
  echo 'FAILED: processes were left behind'
  failures=$((failures + 1))
fi
printf '\n%d passed, %d failed\n' $((failures == 0)) "$failures"
exit $((failures > 0))
