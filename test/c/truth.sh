#!/bin/sh
# truth.sh DIRECTORY: our pprof files as others read them: the official schema by protoc, and go tool pprof.
# What is not installed is skipped, and said.
directory=$1/truth; tool=$1/pprof_tool; here=$(pwd)
mkdir -p "$directory"; cd "$directory" || exit 1
export PPROF_TMPDIR="$directory" HOME="${HOME:-$directory}"
passed=0; failed=0

expect() { # sentence status
  if [ "$2" -eq 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "\"$1\": failed"; fi
}

protoc_() { protoc --proto_path="$here/../support" "$1=perftools.profiles.Profile" "$here/../support/profile.proto"; }

"$tool" example > example.pb; expect "the worked example is written" $?
"$tool" random 7 300 > random.pb; expect "a random profile is written" $?

if command -v protoc > /dev/null 2>&1; then
  protoc_ --decode < example.pb > example.txt && ! grep -q '^ *[0-9]*:' example.txt
  expect "protoc knows every field of the worked example" $?
  protoc_ --decode < random.pb > random.txt && ! grep -q '^ *[0-9]*:' random.txt
  expect "protoc knows every field of a random profile" $?
  protoc_ --encode < "$here/example.txt" > theirs.pb && "$tool" copy < theirs.pb > copied.pb &&
    "$tool" copy < example.pb > ours.pb && protoc_ --decode < copied.pb | sed 's/[0-9]//g' | sort > a &&
    protoc_ --decode < ours.pb | sed 's/[0-9]//g' | sort > b && cmp -s a b
  expect "what protoc encodes reads like what we write" $?
  protoc_ --encode < random.txt > again.pb && "$tool" top < again.pb > a && "$tool" top < random.pb > b && cmp -s a b
  expect "protoc's own encoding of a random profile reads as ours" $?
else
  echo "protoc is not installed: skipped"
fi

if command -v go > /dev/null 2>&1; then
  go tool pprof -top example.pb > top.txt 2> errors.txt
  expect "go tool pprof reads the worked example" $?
  [ ! -s errors.txt ]; expect "without a complaint" $?
  grep -q '^Type: cpu-time' top.txt && grep -q 'Duration: 60s, Total samples = 40ms' top.txt &&
    grep -q '^File: ruby' top.txt && grep -Eq '^ +30ms 75.00% 75.00% +30ms 75.00%  Foo#bar$' top.txt &&
    grep -Eq '^ +10ms 25.00%   100% +40ms   100%  <main>$' top.txt
  expect "and shows what it should" $?
  go tool pprof -raw random.pb > raw.txt 2> errors.txt && [ ! -s errors.txt ]
  expect "go tool pprof reads a random profile" $?
  go tool pprof -traces -sample_index=1 random.pb > a 2> /dev/null && "$tool" copy < random.pb > copied.pb &&
    go tool pprof -traces -sample_index=1 copied.pb > b 2> /dev/null && cmp -s a b
  expect "a copy shows the same traces" $?
else
  echo "go is not installed: skipped"
fi
echo "truth: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
