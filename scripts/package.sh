#!/bin/sh
# Writes what systems install beside the binary into DIST: completions, the manual page, and a Debian package. No root needed.
# usage: package.sh DIST VERSION [ARCH BINARY [SPEAKER]]
#   VERSION   with or without a v
#   ARCH      amd64 or arm64, the processor that BINARY is for; this machine's by default
#   BINARY    a static interlock with the build tag full; built from this checkout by default
#   SPEAKER   the same for this machine, if BINARY is for another; built from this checkout by default
#
# SOURCE_DATE_EPOCH dates all files (dpkg-deb sees to it), and is the time of the last commit by default. The same input gives the same
# bytes.
set -eu
umask 022
export LC_ALL=C TZ=UTC
if [ $# -ne 2 ] && [ $# -ne 4 ] && [ $# -ne 5 ]; then
	sed -n '3,7s/^# //p' "$0" >&2
	exit 64
fi
mkdir -p "$1"
dist=$(cd "$1" && pwd -P)
case ${4:-/} in /*) ;; *) set -- "$1" "$2" "$3" "$PWD/$4" ${5:+"$5"} ;; esac # the folder changes now
case ${5:-/} in /*) ;; *) set -- "$1" "$2" "$3" "$4" "$PWD/$5" ;; esac
version=${2#v}
cd "$(dirname "$0")/.."
own=$(go env GOHOSTARCH)
arch=${3:-$own}
case $arch in amd64 | arm64) ;; *)
	echo "package: no package for the processor $arch: amd64 or arm64" >&2
	exit 64
	;;
esac
# A version of Go sorts v1.0.0-rc.1 before v1.0.0. dpkg does so with a tilde only.
debian=$(printf %s "$version" | sed 's/-/~/')
if ! printf %s "$debian" | grep -qE '^[0-9][0-9A-Za-z.+~-]*$'; then
	echo "package: the version \"$2\" is none; it should be as v1.2.3 or v1.2.3-rc.1" >&2
	exit 64
fi
: "${SOURCE_DATE_EPOCH:=$(git log -1 --format=%ct)}"
export SOURCE_DATE_EPOCH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

build() { CGO_ENABLED=0 go build -tags full -trimpath -ldflags='-s -w -buildid=' -o "$1" ./cmd/interlock; }

speaker=${5:-}
if [ $# -ge 4 ]; then binary=$4; else
	binary=$work/interlock
	build "$binary"
fi

# texts prints what a binary that runs here says of itself. That of another processor says the same, but not here.
texts() {
	if [ "$arch" = "$own" ]; then
		speaker=$binary
	elif [ -z "$speaker" ]; then
		speaker=$work/speaker
		build "$speaker"
	fi
	for shell in bash zsh fish; do "$speaker" completion "$shell" >"$dist/interlock.$shell"; done
	"$speaker" completion powershell >"$dist/interlock.ps1"
	"$speaker" man >"$dist/interlock.1"
}

# put MODE FROM TO copies into the package's tree.
put() {
	mkdir -p "$(dirname "$root/$3")"
	install -m "$1" "$2" "$root/$3"
}

# press FILE TO compresses into the package's tree, without name and time.
press() {
	gzip -9n <"$1" >"$work/pressed"
	put 644 "$work/pressed" "$2"
}

control() {
	cat <<-END
		Package: interlock
		Version: $debian
		Architecture: $arch
		Maintainer: interlock maintainers <interlock-go@users.noreply.github.com>
		Installed-Size: $(du -ks --apparent-size "$root" | cut -f 1)
		Section: admin
		Priority: optional
		Homepage: https://github.com/interlock-go/interlock
		Description: run jobs under a distributed lock
		 interlock runs a job while it holds a lock, so that the job runs once in a
		 fleet. Locks are files of one machine, or are kept by Redis, Valkey, ZooKeeper,
		 etcd, MySQL, MariaDB or PostgreSQL. interlock also elects leaders, and shows,
		 watches and breaks locks, on the terminal and on a web page.
	END
}

changelog() {
	cat <<-END
		interlock ($debian) unstable; urgency=medium

		  * Release $version. What changed stands in NEWS.gz.

		 -- interlock maintainers <interlock-go@users.noreply.github.com>  $(date -u -d "@$SOURCE_DATE_EPOCH" '+%a, %d %b %Y %H:%M:%S +0000')
	END
}

# licences prints those of all modules that the binary says it is made of: their authors want them passed on with it.
licences() {
	go version -m "$binary" >"$work/about"
	awk '$1 == "dep" && $2 !~ "^github.com/interlock-go/interlock(/|$)" { print $2 "@" $3 }' "$work/about" >"$work/parts"
	[ -s "$work/parts" ]
	(cd "$work" && GOWORK=off xargs go mod download -json <parts >found)
	awk -F '"' '$2 == "Path" { path = $4 } $2 == "Version" { its = $4 } $2 == "Dir" { print path, its, $4 }' "$work/found" |
		while read -r path its dir; do
			printf '==== %s %s\n\n' "$path" "$its"
			cat "$dir"/LICEN[CS]E* # fails where there is none
		done
	printf '==== Go\n\n'
	cat "$(go env GOROOT)/LICENSE"
}

tree() {
	root=$work/root
	doc=usr/share/doc/interlock
	put 755 "$binary" usr/bin/interlock
	press "$dist/interlock.1" usr/share/man/man1/interlock.1.gz
	put 644 "$dist/interlock.bash" usr/share/bash-completion/completions/interlock
	put 644 "$dist/interlock.zsh" usr/share/zsh/vendor-completions/_interlock
	put 644 "$dist/interlock.fish" usr/share/fish/vendor_completions.d/interlock.fish
	put 644 packaging/copyright "$doc/copyright"
	press CHANGELOG.md "$doc/NEWS.gz"
	licences >"$work/licences"
	press "$work/licences" "$doc/LICENSES.gz"
	changelog >"$work/changelog"
	press "$work/changelog" "$doc/changelog.gz"
	for unit in packaging/systemd/*; do put 644 "$unit" "$doc/examples/systemd/$(basename "$unit")"; done
	mkdir -p "$root/DEBIAN"
	control >"$root/DEBIAN/control"
	(cd "$root" && find usr -type f | sort | xargs md5sum >DEBIAN/md5sums)
}

texts
tree
# One thread: how many there are would show in the bytes.
dpkg-deb --root-owner-group -Zxz --threads-max=1 --build "$root" "$dist/interlock_${debian}_$arch.deb" >/dev/null
echo "package: $dist/interlock_${debian}_$arch.deb"
