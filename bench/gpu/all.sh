# Sourced by run: all that there is to run, and how far it came. Takes fail, check_writable and shown() from there.

# Each in its seconds at most, by what tells most: what others stand on, then a round of each comparison, then the rest.
parts=(
  "90 environment"
  "60 tests tensor_test"
  "150 tests ops_test"
  "90 trainyard train --device cuda --model.preset Qwen3-0.6B --data.path embedded --data.tokenizer bytes --parallel.param_dtype bf16 --training.steps 20 --checkpoint.enabled false --metrics.dir build/train"
  "150 compare --shapes 0.6B-1024 --rounds 1"
  "150 compare --shapes 1.7B-1024 --rounds 1"
  "120 tests train_test"
  "150 compare --shapes 0.6B-4096 --rounds 1"
  "150 compare --shapes 1.7B-4096 --rounds 1"
  "120 kernels"
  "150 alone idle"
  "60 tests comm_test"
  "90 tests comm_conformance_test"
  "120 tests model_parity_test"
  "120 tests trajectory_test"
  "240 curve"
  "150 alone float8"
  "240 alone llmq"
  "150 compare --shapes 0.6B-1024 --rounds 1 --cuda-graphs"
  "300 compare --shapes 0.6B-1024" "300 compare --shapes 0.6B-4096"
  "300 compare --shapes 1.7B-1024" "300 compare --shapes 1.7B-4096"
)

# "", "passed, …", "failed …" or "cut off …", as one is too that has begun and not ended.
outcome_of() {  # part
  awk -v head="== $1" '
    $0 == head { last = "cut off" }
    index($0, head ": ") == 1 { last = substr($0, length(head) + 3) }
    END { print last }' "$results"
}

run_part() {  # seconds, part
  # shellcheck disable=SC2086  # its words
  TRAINYARD_PART_SECONDS=$1 timeout --kill-after 15 "$1" "$bundle/bench/gpu/run" $2 &
  local group=$! code=0  # timeout makes one of its own
  trap 'kill '$group'; exit 130' INT TERM
  wait "$group" || code=$?
  kill -KILL -- -"$group" 2>/dev/null || true  # what it has left would hold the GPU while others measure
  return "$code"
}

# The first part whose limit is no longer than what is left; where there is none, the first.
next_of() {  # seconds left, part …
  local left=$1 at=0 each; shift
  for each in "$@"; do
    [ "${each%% *}" -gt "$left" ] || { echo "$at"; return; }
    at=$((at + 1))
  done
  echo 0
}

# A part that its own limit ends has failed; one that the end of the call ends is cut off. Both come again in a later call,
# after what has not begun yet: what failed may have been mended, or been the machine's fault.
go_through() {  # end, in SECONDS
  local each limit part left seconds start code took at never=() again=() failed=()
  for each in "${parts[@]}"; do
    case $(outcome_of "${each#* }") in
      "") never+=("$each") ;;
      "cut off"*) again+=("$each") ;;
      failed*) failed+=("$each") ;;
    esac
  done
  set -- "$1" "${never[@]}" "${again[@]}" "${failed[@]}"
  while [ $# -gt 1 ]; do
    left=$(($1 - SECONDS))
    [ "$left" -ge 30 ] || return 0
    at=$(next_of "$left" "${@:2}")
    each=${*:at + 2:1} limit=${each%% *} part=${each#* }
    set -- "${@:1:at + 1}" "${@:at + 3}"
    seconds=$((limit < left ? limit : left))
    echo "== $part"
    start=$SECONDS code=0
    run_part "$seconds" "$part" || code=$?
    took=$((SECONDS - start))
    [ "$code,$((took >= seconds))" != 137,1 ] || code=124  # killed, as it did not end at its end
    case $code,$((limit <= left)) in
      0,*) echo "== $part: passed, $took s" ;;
      124,1) echo "== $part: failed at its limit of $limit s" ;;
      124,0) echo "== $part: cut off after $took s" ;;
      *) echo "== $part: failed with $code, $took s" ;;
    esac
  done
}

# What the parts have left of text, but compilers' caches, for whoever reads the results elsewhere.
keep_logs() {  # archive
  local logs
  mapfile -t logs < <(find build -name '*_cache_dir' -prune -o -type f \( -name '*log' -o -name '*.jsonl' -o -name '*.json' \) -size -16M -print 2>/dev/null)
  [ ${#logs[@]} -eq 0 ] || tar --create --gzip --file "$1" "${logs[@]}" || echo "$1 is not whole"
}

all() {  # [--minutes N]
  local end each passed=0 failed=0
  case "$#:${1-}" in
    0:) end=$((SECONDS + 7 * 24 * 3600)) ;;
    2:--minutes) [[ $2 =~ ^[0-9]{1,4}$ ]] && end=$((SECONDS + 60 * 10#$2 - 15)) || fail "--minutes takes a whole number, not '$2'" ;;
    *) fail "all takes --minutes N, and nothing else" ;;
  esac
  check_writable
  results=$(realpath --canonicalize-missing "${TRAINYARD_RESULTS:-$bundle/results.txt}")
  touch "$results" 2>/dev/null || fail "$results cannot be written to; TRAINYARD_RESULTS names the file of the results"
  cd "$bundle"
  shown "$results" go_through "$end"
  keep_logs "$(dirname "$results")/logs.tar.gz"
  for each in "${parts[@]}"; do
    case $(outcome_of "${each#* }") in
      passed*) passed=$((passed + 1)) ;;
      failed*) failed=$((failed + 1)) ;;
    esac
  done
  echo "$results: $((passed + failed)) of ${#parts[@]} parts, $failed failed"
  [ "$failed" -eq 0 ]
}
