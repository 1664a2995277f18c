#!/bin/sh
# Runs the benchmarks of every module, and the tests of the modules outside of the workspace, which make test leaves out
# because they download competitors.
# usage: bench.sh [argument of go test...]
set -eu
cd "$(dirname "$0")/.."

echo "bench: $(go env GOVERSION) $(go env GOOS)/$(go env GOARCH), $(getconf _NPROCESSORS_ONLN) processors"
GOWORK='' go test -run '^$' -bench . "$@" work
for dir in $(scripts/modules.sh outside); do
	if [ "$dir" = tools ]; then continue; fi # has no packages
	(cd "$dir" && GOWORK=off go test -bench . "$@" ./...)
done
