#!/bin/sh
# Builds the programs that "interlock lab", "interlock torture" and "interlock bench" start, as far as they are there,
# into bin/: every folder */cmd/interlock-NAME.
# usage: programs.sh
set -eu
cd "$(dirname "$0")/.."
top=$(pwd -P)

find . -name testdata -prune -o -type d -path './*/cmd/interlock-*' -print | while read -r dir; do
	module=${dir#./}
	module=${module%%/cmd/*}
	gowork=''
	if scripts/modules.sh outside | grep -qx "$module"; then gowork=off; fi
	echo "programs: $dir"
	(cd "$dir" && GOWORK=$gowork go build -o "$top/bin/$(basename "$dir")" .)
done
