#!/bin/sh
# Installs Debian packages without starting their services, now or at the next boot. Must run as root; setup.sh calls it.
# usage: apt-install.sh PACKAGE...
#
# Tests start servers of their own on free ports; a packaged daemon would take the usual port, and a person's machine would
# be left with services that nobody asked for. Services that were there before are neither stopped nor disabled.
set -eu
policy=/usr/sbin/policy-rc.d
saved=$policy.interlock-saved
marker='written by interlock setup'

# One at a time: a second run would take the first one's policy for a leftover and remove it under apt-get.
if command -v flock >/dev/null; then
	exec 9>/run/interlock-setup.lock
	flock 9
fi

# restore puts the policy back as it was; also what a killed run left behind.
restore() {
	if grep -qs "$marker" "$policy"; then rm -f "$policy"; fi
	if [ -e "$saved" ] || [ -L "$saved" ]; then mv -f "$saved" "$policy"; fi
}

forbid() {
	if [ -e "$policy" ] || [ -L "$policy" ]; then mv -f "$policy" "$saved"; fi
	printf '#!/bin/sh\n# %s: no service starts or stops during an installation\nexit 101\n' "$marker" >"$policy"
	chmod 755 "$policy"
}

installed() {
	dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' | sed -n 's/^ii *//p' | sort -u
}

# disable keeps the services of newly installed packages from starting at the next boot.
disable() {
	if ! command -v systemctl >/dev/null; then return; fi
	installed | comm -13 "$before" - | while read -r package; do
		dpkg -L "$package" | sed -n 's|.*/systemd/system/\([^/@]*\.service\)$|\1|p' | sort -u |
			while read -r unit; do
				systemctl disable "$unit" >/dev/null 2>&1 || echo "setup: could not disable $unit" >&2
			done
	done
}

before=$(mktemp)
trap 'restore; rm -f "$before"' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

restore
forbid
installed >"$before"

export DEBIAN_FRONTEND=noninteractive
apt='apt-get -q -o DPkg::Lock::Timeout=300'
# Old lists may still do, so a failed update is not the end.
$apt update || echo 'setup: apt-get update failed, trying with the present package lists' >&2
$apt install -y --no-install-recommends --no-upgrade "$@" </dev/null
disable
