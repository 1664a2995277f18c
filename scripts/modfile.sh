#!/bin/sh
# Writes copies of a module's go.mod and go.sum in which every other module of this repository is replaced by its folder,
# and prints the name of the copy, for go's -modfile. The copies go into the folder OUT.
# usage: modfile.sh DIR OUT
#
# cmd/interlock needs this outside of the workspace: it must have no replace directive of its own, because
# "go install …/cmd/interlock@latest" refuses a module that has one.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd -P)
dir=$1
out=$2/$(echo "$dir" | tr '/.' '--').mod

cp "$top/$dir/go.mod" "$out"
: >"${out%.mod}.sum"
if [ -f "$top/$dir/go.sum" ]; then cp "$top/$dir/go.sum" "${out%.mod}.sum"; fi
"$top/scripts/modules.sh" tagged | while read -r other; do
	[ "$other" != "$dir" ] || continue
	path=$(awk '$1 == "module" { print $2; exit }' "$top/$other/go.mod")
	go mod edit -replace "$path=$top/$other" "$out"
done
echo "$out"
