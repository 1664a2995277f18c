#!/bin/sh
# Runs the linters over every module and the shell scripts. LINTER is the program that make builds from tools/go.mod.
# usage: lint.sh [run | fmt]
set -eu
cd "$(dirname "$0")/.."
top=$(pwd -P)
linter=$top/${LINTER:-bin/golangci-lint}
command=${1:-run}

failed=''
for dir in $(scripts/modules.sh all); do
	if [ "$dir" = tools ]; then continue; fi # has no packages
	gowork=''
	if scripts/modules.sh outside | grep -qx "$dir"; then gowork=off; fi
	echo "lint: $dir"
	(cd "$dir" && GOWORK=$gowork "$linter" "$command" --config "$top/.golangci.yml" ./...) || failed="$failed $dir"
done
if [ "$command" = run ]; then
	scripts/modules.sh check || failed="$failed modules.txt"
	scripts/sleeps.sh || failed="$failed sleeps"
	if command -v shellcheck >/dev/null; then
		echo 'lint: shell scripts'
		shellcheck .ci/run scripts/*.sh || failed="$failed scripts"
	else
		echo 'lint: shellcheck is not installed, so the shell scripts were not checked' >&2
		if [ -n "${INTERLOCK_REQUIRE:-}" ]; then failed="$failed shellcheck"; fi
	fi
fi
if [ -n "$failed" ]; then
	echo "lint: failed:$failed" >&2
	exit 1
fi
