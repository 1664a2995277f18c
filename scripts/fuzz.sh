#!/bin/sh
# Fuzzes the targets of the workspace one after the other, each for TIME. Inputs that fail stay in testdata/fuzz.
# usage: fuzz.sh TIME [TARGET]       TARGET is a regular expression; all targets by default
set -eu
cd "$(dirname "$0")/.."
time=$1
want=${2:-.}

found=''
for dir in $(GOWORK='' go list -f '{{.Dir}}' work); do
	targets=$(cat "$dir"/*_test.go 2>/dev/null | sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' | grep -E "$want" || true)
	for target in $targets; do
		found=yes
		echo "fuzz: $target in ${dir#"$(pwd -P)"/}"
		(cd "$dir" && go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" .)
	done
done
[ -n "$found" ] || { echo "fuzz: no target matches $want" >&2; exit 64; }
