#!/bin/sh
# Tests every module of the workspace under the race detector.
# usage: test.sh [argument of go test...]
set -eu
cd "$(dirname "$0")/.."

race=-race
if [ "$(uname -s)" != Darwin ] && [ "$(go env CGO_ENABLED)" = 0 ]; then
	# Go turns cgo off by itself when there is no C compiler.
	if [ -n "${INTERLOCK_REQUIRE:-}" ]; then
		echo 'test: the race detector needs cgo and a C compiler, and INTERLOCK_REQUIRE is set' >&2
		exit 1
	fi
	echo 'test: no C compiler, so WITHOUT the race detector' >&2
	race=''
fi

# "work" is every package of every module of go.work; "./..." would be those of the root module only.
# The largest packages take some minutes; beside other load they may take longer than the ten that go test gives them.
GOWORK='' go test -timeout=30m ${race:+"$race"} "$@" work
