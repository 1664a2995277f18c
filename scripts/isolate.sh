#!/bin/sh
# Shows what a user gets who imports one engine only: for the core, each engine, adapter, command and kit it makes a module
# outside of the workspace that imports just that, lists every module in its build list, and compares the list with
# testdata/deps/NAME.txt. With "update" it writes these files.
# usage: isolate.sh [update]
set -eu
cd "$(dirname "$0")/.."
top=$(pwd -P)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export GOWORK=off GOFLAGS=-mod=mod
root=$(awk '$1 == "module" { print $2 }' go.mod)
version=$(go env GOVERSION | sed -e 's/^go//' -e 's/[ -].*//')

# consumer makes the module that imports package $1 and prints its build list. A command cannot be imported: it is
# required as a tool.
consumer() {
	rm -rf "$work/consumer"
	mkdir "$work/consumer"
	cd "$work/consumer"
	go mod init example.com/consumer 2>/dev/null
	go mod edit -go="$version"
	for module in $("$top/scripts/modules.sh" tagged); do
		path=$(awk '$1 == "module" { print $2 }' "$top/$module/go.mod")
		go mod edit -replace "$path=$top/$module"
	done
	printf 'package consumer\n' >consumer.go
	case $1 in
	*/cmd/*) go mod edit -tool "$1" ;;
	*) printf '\nimport _ "%s"\n' "$1" >>consumer.go ;;
	esac
	go mod tidy >"$work/log" 2>&1 || { cat "$work/log" >&2; return 1; }
	go build -tags=full -buildvcs=false -o /dev/null . "$1" # with all engines of the command
	go list -m -f '{{if not .Main}}{{.Path}}{{if not .Replace}} {{.Version}}{{end}}{{end}}' all | sed '/^$/d' | LC_ALL=C sort
}

failed=''
for dir in . $(scripts/engines.sh) $(scripts/modules.sh tagged | grep '^cmd/\|^adapters/\|^enginekit/' || true); do
	name=$(echo "$dir" | tr / -)
	import=$root/$dir
	if [ "$dir" = . ]; then
		name=interlock
		import=$root
	fi
	golden=testdata/deps/$name.txt
	(consumer "$import") >"$work/got"
	if [ "${1:-}" = update ]; then
		mkdir -p testdata/deps
		cp "$work/got" "$golden"
	elif [ ! -f "$golden" ]; then
		echo "isolate: $golden is missing; please run: make golden" >&2
		failed="$failed $name"
	elif ! diff -u "$golden" "$work/got" >&2; then
		failed="$failed $name"
	fi
	echo "isolate: $name: $(wc -l <"$work/got" | tr -d ' ') modules"
done
if [ -n "$failed" ]; then
	echo "isolate: the modules that reach users have changed (a new one needs an entry in docs/rationale.md; make golden accepts):$failed" >&2
	exit 1
fi
