#!/bin/sh
# Runs the benchmarks of every module, and the tests of the modules outside of the workspace, which make test leaves out
# because they download competitors. Among these tests are the scenarios that make bench measures, each for a moment.
# usage: bench.sh [argument of go test...]
set -eu
cd "$(dirname "$0")/.."

# measured prints those of the packages $1 that have benchmarks: to build the tests of all others would take most of the time.
measured() {
	all=$(go list -f '{{.ImportPath}} {{.Dir}}' "$1") || return
	printf '%s\n' "$all" | while read -r package dir; do
		if grep -qs '^func Benchmark' "$dir"/*_test.go; then echo "$package"; fi
	done
}

# go_test is as in test.sh: make lint vets, and nobody debugs these programs.
go_test() {
	go test -timeout=1h -vet=off -ldflags=-w "$@"
}

echo "bench: $(go env GOVERSION) $(go env GOOS)/$(go env GOARCH), $(getconf _NPROCESSORS_ONLN) processors"
names=$(GOWORK='' measured work) || exit
if [ -z "$names" ]; then
	echo 'bench: the workspace has no benchmark' >&2
	exit 1
fi
# Lists are split on purpose. Benchmarks run one after the other; the tests wait for servers and the ends of leases for most of
# their time, and judge none.
# shellcheck disable=SC2086
GOWORK='' go_test -run '^$' -bench . "$@" $names
export GOWORK=off
for dir in $(scripts/modules.sh outside); do
	(
		cd "$dir"
		go_test "$@" ./...
		names=$(measured ./...) || exit
		# shellcheck disable=SC2086
		[ -z "$names" ] || go_test -run '^$' -bench . "$@" $names
	)
done
