# Sourced by what runs programs here.

# Runs a command whose output is added to a file, and shows what comes: the command's exit code. Not through a pipe, whose
# end would wait for all that the command leaves running.
shown() {  # file, command …
  local file=$1 begin code=0 command tail
  begin=$(stat --format %s "$file")
  "${@:2}" >>"$file" 2>&1 &
  command=$!
  tail --follow --bytes +$((begin + 1)) --sleep-interval 0.1 --pid $command "$file" &
  tail=$!
  trap "kill $command 2>/dev/null; exit 130" INT TERM
  wait $command || code=$?
  wait $tail || true
  trap - INT TERM
  return $code
}
