#!/bin/sh
# Installs what the checks need on Debian and Ubuntu; elsewhere it says what to install. It may be run again at any time.
# usage: setup.sh [group]        a group of programs.txt, test by default
#
# As root it installs without asking. Otherwise it names the packages and asks before it uses sudo; in CI (the variable
# CI is set) it uses sudo if that needs no password. Without a terminal it installs nothing: the tests that need a missing
# program are then skipped with the reason, or fail if INTERLOCK_REQUIRE names it.
set -eu
cd "$(dirname "$0")/.."
group=${1:-test}

# links reports whether a C program can be built: a compiler without the C library's headers is not enough for -race.
links() {
	dir=$(mktemp -d)
	rc=0
	printf '#include <stdlib.h>\nint main(void) { return 0; }\n' >"$dir/probe.c"
	# go env CC may hold arguments, so it is split here on purpose.
	# shellcheck disable=SC2046
	$(go env CC) -o "$dir/probe" "$dir/probe.c" >/dev/null 2>&1 || rc=1
	rm -rf "$dir"
	return "$rc"
}

# matches reports whether there is a file for an absolute pattern.
matches() {
	# It is expanded here on purpose.
	# shellcheck disable=SC2086
	set -- $1
	[ -e "$1" ]
}

present() {
	case $1 in
	cc) [ "$(uname -s)" = Darwin ] || links ;; # the race detector needs no C compiler on macOS
	/*) matches "$1" ;;
	*) PATH=$PATH:/usr/sbin:/usr/local/sbin command -v "$1" >/dev/null ;;
	esac
}

# recent reports whether program $1 is at least version $2; a version that cannot be read passes.
recent() {
	[ "$2" = - ] && return
	have=$("$1" --version 2>/dev/null | grep -oE '[0-9]+(\.[0-9]+)+' | head -n 1) || return 0
	[ "$(printf '%s\n%s\n' "$2" "$have" | sort -V | head -n 1)" = "$2" ]
}

if ! command -v go >/dev/null; then
	echo 'setup: Go is missing: see https://go.dev/doc/install' >&2
	exit 1
fi

packages=''
missing=''
while read -r of program minimum debian purpose; do
	[ "$of" = "$group" ] || continue
	if ! present "$program"; then
		packages="$packages $(echo "$debian" | tr , ' ')"
		missing="$missing
  $program ($purpose)"
	elif ! recent "$program" "$minimum"; then
		echo "setup: $program is older than $minimum, the oldest version that is supported" >&2
	fi
done <scripts/programs.txt

if [ -z "$missing" ]; then
	echo "setup: nothing to install for $group"
	exit 0
fi

# refuse ends without an installation. That is an error only where nothing may be skipped.
refuse() {
	echo "setup: $1" >&2
	if [ -n "${INTERLOCK_REQUIRE:-}" ]; then exit 1; fi
	exit 0
}

printf 'setup: missing for %s:%s\n' "$group" "$missing"
if ! command -v apt-get >/dev/null; then
	refuse 'please install these with your system'\''s package manager, then run this again'
fi
echo "setup: Debian packages:$packages"

# $packages is a list, so it is split here on purpose.
# shellcheck disable=SC2086
if [ "$(id -u)" -eq 0 ]; then
	sh scripts/apt-install.sh $packages || refuse 'apt-get failed, see above'
elif ! command -v sudo >/dev/null; then
	refuse "please run as root: apt-get install$packages"
elif [ -n "${CI:-}" ] && sudo -n true 2>/dev/null; then
	sudo -n sh scripts/apt-install.sh $packages || refuse 'apt-get failed, see above'
elif [ -t 0 ]; then
	printf 'setup: install them with sudo apt-get? No service will be started. [y/N] '
	read -r answer || answer=
	case $answer in
	[yY]*) sudo sh scripts/apt-install.sh $packages || refuse 'apt-get failed, see above' ;;
	*) refuse 'nothing installed' ;;
	esac
else
	refuse "nothing installed, as there is no terminal to ask; please run: sudo apt-get install$packages"
fi
