#!/bin/sh
# Compares what each released module exports with testdata/api/MODULE.txt. With "update" it writes these files.
# usage: api.sh [update]
set -eu
cd "$(dirname "$0")/.."
top=$(pwd -P)
(cd tools && GOWORK=off go build -buildvcs=false -o ../bin/interlock-api ./api)
update=''
if [ "${1:-}" = update ]; then update=-update; fi

# api GOWORK MODULE...
api() {
	gowork=$1
	shift
	GOWORK=$gowork bin/interlock-api $update testdata/api "$@"
}

outside=$(scripts/modules.sh outside)
inside=''
failed=''
for dir in $(scripts/modules.sh tagged); do
	if echo "$outside" | grep -qx "$dir"; then
		api off "$dir" || failed=yes
	else
		inside="$inside $dir"
	fi
done
# shellcheck disable=SC2086 # a list
api "$top/go.work" $inside || failed=yes
[ -z "$failed" ]
