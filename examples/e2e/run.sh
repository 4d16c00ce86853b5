#!/bin/sh
# Runs the end-to-end tests in two halves side by side, each on a tenant cluster of
# its own: most of their time goes into waiting for nodes. The output of each half
# comes as a whole.
set -eu
program=$1
TESTBED_PROGRAMS=$(dirname "$program")
export TESTBED_PROGRAMS
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

half() { # half NUMBER
    tests=$("$program" -test.list '^Test' | awk -v n="$1" 'NR % 2 == n { printf "%s%s", sep, $1; sep = "|" }')
    E2E_TENANT=e2e-$1 "$program" -test.run "^($tests)\$" -test.v -test.timeout 40m >"$out/$1" 2>&1
}

half 0 &
first=$!
half 1 &
second=$!
failed=0
wait "$first" || failed=1
cat "$out/0"
wait "$second" || failed=1
cat "$out/1"
echo "== the end-to-end tests"
grep -h '^--- FAIL\|^panic\|^e2e:' "$out/0" "$out/1" || true
exit "$failed"
