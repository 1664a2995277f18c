#!/bin/sh
# Builds the programs that "interlock NAME" starts, as far as this version has them, into bin/: bench as interlock-bench, and
# every folder */cmd/interlock-NAME.
# usage: programs.sh
set -eu
cd "$(dirname "$0")/.."
top=$(pwd -P)

# build DIR MODULE NAME
build() {
	gowork=''
	if scripts/modules.sh outside | grep -qx "$2"; then gowork=off; fi
	echo "programs: bin/$3"
	(cd "$1" && GOWORK=$gowork go build -o "$top/bin/$3" .)
}

build bench bench interlock-bench
find . -name testdata -prune -o -type d -path './*/cmd/interlock-*' -print | while read -r dir; do
	module=${dir#./}
	build "$dir" "${module%%/cmd/*}" "$(basename "$dir")"
done
