#!/bin/sh
# Rewrites the golden files: the lists of dependencies and of what is exported, and those of every package of the workspace whose tests have a flag
# -update. The difference is reviewed like code.
# usage: golden.sh
set -eu
cd "$(dirname "$0")/.."

scripts/isolate.sh update
scripts/api.sh update
for dir in $(GOWORK='' go list -f '{{.Dir}}' work); do
	if ! grep -qs 'flag\.Bool("update"' "$dir"/*_test.go; then continue; fi
	(cd "$dir" && go test -count=1 . -update)
done
