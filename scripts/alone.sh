#!/bin/sh
# Builds and vets every module outside of the workspace, as its users see it: a missing requirement or line of go.sum is
# invisible inside. The root is built for other systems too.
# usage: alone.sh
set -eu
cd "$(dirname "$0")/.."
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
export GOWORK=off

for dir in $(scripts/modules.sh all); do
	if [ "${dir#cmd/}" != "$dir" ] && grep -q '^replace\|^	*[^ ]* *=> ' "$dir/go.mod"; then
		echo "alone: $dir/go.mod has a replace directive; go install would refuse this module" >&2
		exit 1
	fi
	modfile=$(scripts/modfile.sh "$dir" "$out")
	echo "alone: $dir"
	# The command has more engines with the tag full; to the other modules the tag means nothing.
	case $dir in cmd/*) builds='- full' ;; *) builds=- ;; esac
	for tags in $builds; do
		tags=${tags#-}
		(cd "$dir" && go build -tags="$tags" -buildvcs=false -modfile="$modfile" -o /dev/null ./... && go vet -tags="$tags" -modfile="$modfile" ./...)
	done
	# Files for other systems are compiled by nobody else here.
	if [ "$dir" = . ]; then
		for os in darwin windows; do
			echo "alone: $dir for $os"
			GOOS=$os CGO_ENABLED=0 go build -modfile="$modfile" ./...
		done
	fi
done
