#!/bin/sh
# Measures what bench/ measures, one run after the other, and writes the rounds and the tables: bench/baseline, bench/README.md
# and docs/comparison.md. All of it takes about an hour and a half on two processors, on which nothing else should run. What
# was measured before a failure stays written.
# usage: measure.sh [files|redis|distance|growth|engines|crowds|comparison...]; without an argument all of them
set -eu
cd "$(dirname "$0")/../bench"
export GOWORK=off

measure() {
	echo "measure: $1, since $(date +%H:%M)"
	case $1 in
	files) go run . -rounds 5 -time 400ms -write ;;
	redis) go run . -scenario redis -rounds 3 -time 300ms -write ;;
	distance) go run . -scenario distance -rounds 5 -time 300ms -write ;;
	growth) go run . -scenario growth -rounds 5 -time 300ms -write ;;
	engines) go run . -scenario engines -rounds 3 -time 300ms -write ;;
	crowds) go run . -scenario crowds -write ;;
	comparison) go run . -scenario comparison -rounds 3 -time 500ms -write ;;
	*)
		echo "measure: there is no table $1; there are files, redis, distance, growth, engines, crowds and comparison" >&2
		exit 64
		;;
	esac >/dev/null
}

if [ $# -eq 0 ]; then set -- files redis distance growth engines crowds comparison; fi
for table in "$@"; do measure "$table"; done
echo "measure: done, at $(date +%H:%M)"
