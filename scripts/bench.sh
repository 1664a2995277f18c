#!/bin/sh
# Runs the benchmarks of every module, and the tests of the modules outside of the workspace, which make test leaves out
# because they download competitors. Among these tests are the scenarios that make bench measures, each for a moment.
# usage: bench.sh [argument of go test...]
set -eu
cd "$(dirname "$0")/.."

# measured prints the packages of the workspace that have benchmarks: to build the tests of all others would take most of the time.
measured() {
	all=$(GOWORK='' go list -f '{{.ImportPath}} {{.Dir}}' work) || return
	printf '%s\n' "$all" | while read -r package dir; do
		if grep -qs '^func Benchmark' "$dir"/*_test.go; then echo "$package"; fi
	done
}

# go_test is as in test.sh: make lint vets, and nobody debugs these programs. With -bench it runs one package after the other.
go_test() {
	go test -timeout=1h -vet=off -ldflags=-w -bench . "$@"
}

echo "bench: $(go env GOVERSION) $(go env GOOS)/$(go env GOARCH), $(getconf _NPROCESSORS_ONLN) processors"
names=$(measured) || exit
if [ -z "$names" ]; then
	echo 'bench: the workspace has no benchmark' >&2
	exit 1
fi
# It is a list, so it is split here on purpose.
# shellcheck disable=SC2086
GOWORK='' go_test -run '^$' "$@" $names
for dir in $(scripts/modules.sh outside); do
	(cd "$dir" && GOWORK=off go_test "$@" ./...)
done
