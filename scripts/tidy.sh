#!/bin/sh
# Tidies go.mod and go.sum of every module. With "check" it changes nothing and fails when there is something to do.
# usage: tidy.sh [check]
set -eu
cd "$(dirname "$0")/.."
top=$(pwd -P)
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
export GOWORK=off

failed=''
for dir in $(scripts/modules.sh all); do
	modfile=$(scripts/modfile.sh "$dir" "$out")
	if [ "${1:-}" = check ]; then
		(cd "$dir" && go mod tidy -diff -modfile="$modfile") || failed="$failed $dir"
		continue
	fi
	(cd "$dir" && go mod tidy -modfile="$modfile")
	# The replacements belong to the copy, not to the module; those that the module itself has become what they were.
	for other in $(scripts/modules.sh tagged); do
		path=$(awk '$1 == "module" { print $2; exit }' "$other/go.mod")
		own=$(awk -v path="$path" '$1 == "replace" && $2 == path && $3 == "=>" { print $4 }' "$dir/go.mod")
		if [ -n "$own" ]; then
			go mod edit -replace "$path=$own" "$modfile"
		else
			go mod edit -dropreplace "$path" "$modfile"
		fi
	done
	cp "$modfile" "$dir/go.mod"
	if [ -s "${modfile%.mod}.sum" ]; then cp "${modfile%.mod}.sum" "$top/$dir/go.sum"; else rm -f "$dir/go.sum"; fi
done
if [ -n "$failed" ]; then
	echo "tidy: please run make tidy; not tidy:$failed" >&2
	exit 1
fi
