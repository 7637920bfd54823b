#!/bin/sh
# run_all.sh DIRECTORY "FUZZERS" PROGRAM...: runs the C tests and adds up what they print; called by the Makefile.
# A program that dies without its last line counts as one failure.
directory=$1; fuzzers=$2; shift 2
passed=0; failed=0

# Adds the last line "<name>: N passed, N failed" of a program's output, given on standard input with its exit status.
count() { # status name
  output=$(cat); line=$(printf '%s\n' "$output" | tail -n 1)
  case $line in
    *" passed, "*" failed")
      numbers=${line##*: }
      passed=$((passed + ${numbers%% passed*}))
      bad=${numbers##*, }; bad=${bad%% failed}
      failed=$((failed + bad))
      [ "$1" -ne 0 ] && [ "$bad" -eq 0 ] && failed=$((failed + 1)) ;;
    *) failed=$((failed + 1)) ;;
  esac
  [ "$1" -eq 0 ] && printf '%s\n' "$line" || printf '%s\n%s: exit status %s\n' "$output" "$2" "$1"
}

run() { # name command...
  name=$1; shift
  "$@" > "$directory/output" 2>&1
  count $? "$name" < "$directory/output"
}

for program in "$@"; do run "${program##*/}" "$program"; done
for fuzzer in $fuzzers; do run "$fuzzer" "$directory/$fuzzer" --mutations "${MUTATIONS:-20000}" ../fuzz/corpus/*; done
run truth sh truth.sh "$directory"
echo "C tests: $passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
