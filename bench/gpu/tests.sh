# Sourced by run: the tests of a bundle. Takes with_libraries, fail and shown() from there.

# Of Catch2's last line, as a test may start its program once more; one that did not come to it has failed.
results() {  # log, exit code
  local of_all='s/^All tests passed .* in ([0-9]+) test cases?\)$/\1 0/p'
  local of_each='s/^test cases: .*[|] *([0-9]+) passed [|] *([0-9]+) failed.*/\1 \2/p'
  local of_none='s/^test cases: [0-9]+ [|] ([0-9]+) failed$/0 \1/p'
  local passed failed
  read -r passed failed < <(sed -nE "$of_all; $of_each; $of_none" "$1" | tail -n 1; echo 0 1)
  [ "$2" -eq 0 ] || [ "$failed" -gt 0 ] || failed=1
  echo "$passed $failed"
}

# Of a program's cases, a name a line, those that have not passed by its log with durations: a line "0.001 s: name" at the
# end of each case and section. Where the log ends before the program did, its last case may have been in the middle.
not_passed() {  # names, log
  awk '
    NR == FNR { names[++count] = $0; is_case[$0]; next }
    /: FAILED:/ { is_bad = 1 }
    /^(All tests passed|test cases:) / { is_whole = 1 }
    /^[0-9.]+ s: / && (name = substr($0, index($0, " s: ") + 4)) in is_case {
      if (is_bad) failed[name]; else passed[name]
      is_bad = 0; last = name
    }
    END {
      if (!is_whole && last != "") failed[last]
      for (i = 1; i <= count; ++i) if (!(names[i] in passed) || names[i] in failed) print names[i]
    }' "$1" "$2"
}

run_tests() {  # seconds or 0 for no limit, program, flag …
  with_libraries timeout --foreground --kill-after 5 "$1" "$bundle/bin/$2" "${@:3}"
}

# After a fault of the device every case fails that comes behind it in the same process. So whatever has not passed in a
# program that failed runs once more, each case in a process of its own: those that fail then are the failed ones, and
# where none does, the whole program is, unless it just took too long.
by_themselves() {  # program, log, exit code; sets p and f, how many passed and failed then
  local program=$1 log=$2 whole=$3 names rest case code
  names=$log.names rest=$log.rest
  (run_tests 60 "$program" --list-test-names-only) >"$names" 2>/dev/null || true  # the exit code is how many there are
  [ -s "$names" ] || return 0
  not_passed "$names" "$log" >"$rest"
  p=$(($(wc -l <"$names") - $(wc -l <"$rest"))) f=0
  while IFS= read -r case <&4; do
    code=0; shown "$log" run_tests 20 "$program" "$(sed 's/[],["\\]/\\&/g' <<<"$case")" --warn NoTests || code=$?
    case $code in
      0) p=$((p + 1)); echo "-- passed by itself: $case" ;;
      *) f=$((f + 1)); echo "-- failed with $code by itself: $case" ;;
    esac
  done 4<"$rest"
  [ "$f" -gt 0 ] || [ "$whole" -eq 124 ] || f=1
}

tests() {  # program …
  local passed=0 failed=0 skipped=0 name p f code folder
  folder=$(mktemp -d)
  trap "rm -rf '$folder'" EXIT
  [ $# -gt 0 ] || set -- $(cd "$bundle/bin" && echo *_test)
  for name in "$@"; do
    [ -x "$bundle/bin/$name" ] || fail "there is no $name in $bundle/bin"
    echo "== $name"
    : >"$folder/log"
    # Half of a part's time, so that one that hangs leaves the other half for its cases.
    code=0
    shown "$folder/log" run_tests $((${TRAINYARD_PART_SECONDS:-0} / 2)) "$name" --durations yes |
      sed --unbuffered '/^[0-9.]* s: /d' || code=$?
    read -r p f < <(results "$folder/log" "$code")
    [ "$f" -eq 0 ] || by_themselves "$name" "$folder/log" "$code"
    passed=$((passed + p)) failed=$((failed + f))
    skipped=$((skipped + $(grep -c '^SKIPPED: ' "$folder/log" || true)))
  done
  echo "$((passed - skipped)) passed, $failed failed, $skipped skipped"
  [ "$failed" -eq 0 ]
}
