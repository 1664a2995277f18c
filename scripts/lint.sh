#!/bin/sh
# Runs the linters over every module, the shell scripts and the alerts of deploy. LINTER is the program that make builds from tools/go.mod.
# usage: lint.sh [run | fmt]
set -eu
cd "$(dirname "$0")/.."
top=$(pwd -P)
linter=$top/${LINTER:-bin/golangci-lint}
command=${1:-run}

failed=''

# absent says that program $1 is missing and that $2 not checked. That is an error only where nothing may be skipped.
absent() {
	echo "lint: $1 is not installed, so $2 not checked" >&2
	if [ -n "${INTERLOCK_REQUIRE:-}" ]; then failed="$failed $1"; fi
}

# lint runs the linter in folder $1, with $2 as its workspace, over the packages after them.
lint() {
	dir=$1 gowork=$2
	shift 2
	echo "lint: $dir: $*"
	(cd "$dir" && GOWORK=$gowork "$linter" "$command" --config "$top/.golangci.yml" "$@") || failed="$failed $dir"
}

# The workspace in one run: the facts about what all modules import are read once.
# shellcheck disable=SC2046 # a list
lint . '' $(scripts/modules.sh workspace | sed 's|.*|./&/...|; s|/\./|/|')
for dir in $(scripts/modules.sh outside); do
	lint "$dir" off ./...
done
if [ "$command" = run ]; then
	scripts/modules.sh check || failed="$failed modules.txt"
	scripts/sleeps.sh || failed="$failed sleeps"
	if git grep -nE '(^|[^A-Za-z0-9_.*}-])/(work|root|Users|home/[a-z]+)/' -- . ':!*go.sum' >&2; then
		echo "lint: these lines name a folder of somebody's machine" >&2
		failed="$failed folders"
	fi
	echo 'lint: API'
	scripts/api.sh || failed="$failed testdata/api"
	if command -v shellcheck >/dev/null; then
		echo 'lint: shell scripts'
		shellcheck .ci/run scripts/*.sh || failed="$failed scripts"
	else
		absent shellcheck 'the shell scripts were'
	fi
	if command -v promtool >/dev/null; then
		echo 'lint: alerts'
		promtool check rules deploy/alerts.yaml >&2 || failed="$failed alerts.yaml"
		promtool test rules deploy/alerts_test.yaml >&2 || failed="$failed alerts_test.yaml"
	else
		absent promtool 'deploy/alerts.yaml was'
	fi
fi
if [ -n "$failed" ]; then
	echo "lint: failed:$failed" >&2
	exit 1
fi
