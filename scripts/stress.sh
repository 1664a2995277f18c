#!/bin/sh
# Repeats tests until one fails, and then shows its output, the seed included.
# usage: stress.sh N PACKAGE [TEST]       TEST is a regular expression; all tests by default
set -eu
cd "$(dirname "$0")/.."
times=$1
package=$2
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

go test -race -c -o "$out/stress.test" "$package"
cd "$(go list -f '{{.Dir}}' "$package")" # tests read their testdata
i=0
while [ "$i" -lt "$times" ]; do
	i=$((i + 1))
	if ! "$out/stress.test" -test.v -test.shuffle=on -test.run "${3:-.}" >"$out/log" 2>&1; then
		cat "$out/log"
		echo "stress: run $i of $times failed" >&2
		exit 1
	fi
done
echo "stress: $times runs passed"
