#!/bin/sh
# Measures what bench/ measures, one run after the other, and writes the rounds and the tables: bench/baseline, bench/README.md,
# docs/evidence/bench and docs/comparison.md. All of it takes about an hour and a half on two processors, on which nothing else
# should run. What was measured before a failure stays written.
# usage: measure.sh [files|redis|redis-client|redis-retain|distance|growth|engines|crowds|comparison...]; without an argument
# all of them
set -eu
cd "$(dirname "$0")/../bench"
export GOWORK=off

all='files redis redis-client redis-retain distance growth engines crowds comparison'

measure() {
	echo "measure: $1, since $(date +%H:%M)"
	case $1 in
	files) go run . -rounds 5 -time 400ms -write ;;
	redis) go run . -scenario redis -rounds 3 -time 300ms -write ;;
	redis-client) go run . -scenario redis-client -rounds 5 -time 300ms -write ;;
	redis-retain) go run . -scenario redis-retain -rounds 5 -time 300ms -write ;;
	distance) go run . -scenario distance -rounds 5 -time 300ms -write ;;
	growth) go run . -scenario growth -rounds 5 -time 300ms -write ;;
	engines) go run . -scenario engines -rounds 3 -time 300ms -write ;;
	crowds) go run . -scenario crowds -write ;;
	comparison) go run . -scenario comparison -rounds 3 -time 500ms -write ;;
	*)
		echo "measure: there is no table $1; there are $all" >&2
		exit 64
		;;
	esac >/dev/null
}

# shellcheck disable=SC2086 # these are words
if [ $# -eq 0 ]; then set -- $all; fi
for table in "$@"; do measure "$table"; done
echo "measure: done, at $(date +%H:%M)"
