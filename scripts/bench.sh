#!/bin/sh
# Runs the benchmarks of every module, and the tests of the modules outside of the workspace, which make test leaves out
# because they download competitors. Among these are the scenarios that make bench measures, each for a moment.
# usage: bench.sh [argument of go test...]
set -eu
cd "$(dirname "$0")/.."

# measured prints those of the packages $1 that have benchmarks: to link the tests of all others would take most of the time.
measured() {
	all=$(go list -f '{{.ImportPath}} {{.Dir}}' "$1") || return
	printf '%s\n' "$all" | while read -r package dir; do
		if grep -qs '^func Benchmark' "$dir"/*_test.go; then echo "$package"; fi
	done
}

# go_test is as in test.sh: make lint vets, and nobody debugs these programs.
go_test() {
	go test -vet=off -ldflags=-w "$@"
}

# benchmark runs the benchmarks of the packages $1, one after the other, with the other arguments.
benchmark() {
	names=$(measured "$1") || return
	shift
	if [ -z "$names" ]; then
		echo 'bench: there is no benchmark' >&2
		return 1
	fi
	# It is a list, so it is split here on purpose.
	# shellcheck disable=SC2086
	go_test -run '^$' -bench . "$@" $names
}

echo "bench: $(go env GOVERSION) $(go env GOOS)/$(go env GOARCH), $(getconf _NPROCESSORS_ONLN) processors"
GOWORK='' benchmark work "$@"
for dir in $(scripts/modules.sh outside); do
	if [ "$dir" = tools ]; then continue; fi # has no packages
	(
		cd "$dir"
		export GOWORK=off
		# Without -bench, which would have one package wait for the other: most of these tests wait.
		go_test "$@" ./...
		benchmark ./... "$@"
	)
done
