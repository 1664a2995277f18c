#!/bin/sh
# Runs the conformance suite on every engine and writes what it found as a table.
# usage: matrix.sh FILE      writes FILE
#        matrix.sh check     fails when docs/evidence/engines.md is not what the run says
# With the variable INTERLOCK_RESULTS, a folder in which tests that ran before have left what they found, it runs nothing.
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# drivertest writes one file for each engine into this folder.
if [ -z "${INTERLOCK_RESULTS:-}" ]; then
	INTERLOCK_RESULTS=$work/results
	export INTERLOCK_RESULTS
	mkdir "$INTERLOCK_RESULTS"
	scripts/conformance.sh
fi
go run ./internal/matrix "$INTERLOCK_RESULTS" >"$work/engines.md"

if [ "$1" != check ]; then
	cp "$work/engines.md" "$1"
elif ! diff -u docs/evidence/engines.md "$work/engines.md" >&2; then
	echo 'matrix: docs/evidence/engines.md is not what the engines do; please run: make matrix' >&2
	exit 1
fi
