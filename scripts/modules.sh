#!/bin/sh
# Prints folders of modules, one per line, as modules.txt lists them.
# usage: modules.sh [all | workspace | outside | tagged | check]
#   all        every module that is there
#   workspace  those of go.work, asked of go itself
#   outside    those that run with GOWORK=off
#   tagged     those that are released
#   check      prints nothing; fails when modules.txt, go.work and the tree disagree
set -eu
cd "$(dirname "$0")/.."
top=$(pwd -P)

# listed prints the folders of modules.txt, of those that are there, whose column $1 (2 tagged, 3 workspace) says $2.
listed() {
	awk -v column="$1" -v want="$2" '$1 !~ /^#/ && NF >= 3 && $column ~ want { print $1 }' modules.txt |
		while read -r dir; do
			if [ -f "$dir/go.mod" ]; then echo "$dir"; fi
		done
}

# workspace asks go, so that what is tested is what go.work says, whatever modules.txt says.
workspace() {
	GOWORK='' go list -m -f '{{.Dir}}' | while read -r dir; do
		case $dir in
		"$top") echo . ;;
		"$top"/*) echo "${dir#"$top"/}" ;;
		*) echo "$dir" ;;
		esac
	done | sort
}

# present prints every folder with a go.mod, test data aside.
present() {
	find . -name testdata -prune -o -name .git -prune -o -name go.mod -print |
		sed -e 's|/go.mod$||' -e 's|^\./||' | sort
}

same() {
	[ "$2" = "$3" ] && return
	printf 'modules.txt and %s disagree:\n%s\n-- against --\n%s\n' "$1" "$2" "$3" >&2
	return 1
}

case ${1:-all} in
all) listed 1 . ;;
workspace) workspace ;;
outside) listed 3 no ;;
tagged) listed 2 yes ;;
check)
	same 'the tree' "$(listed 1 . | sort)" "$(present)"
	same go.work "$(listed 3 yes | sort)" "$(workspace)"
	;;
*)
	echo "modules.sh: unknown list $1" >&2
	exit 64
	;;
esac
