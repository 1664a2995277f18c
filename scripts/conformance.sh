#!/bin/sh
# Runs the conformance suite on one engine, or on all.
# usage: conformance.sh [ENGINE] [argument of go test...]
set -eu
cd "$(dirname "$0")/.."
engine=${1:-}
if [ $# -gt 0 ]; then shift; fi

# Some ways to a server are a part of long runs alone.
export INTERLOCK_LONG=1

dirs=$(scripts/engines.sh "$engine")
for dir in $dirs; do
	(cd "$dir" && go test -race -count=1 -run '^TestConformance' "$@" .)
done
