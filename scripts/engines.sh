#!/bin/sh
# Prints the folders of the engines: those with a conformance_test.go. With a name, the one folder that it means:
# redis, redislock and ./redislock are the same.
# usage: engines.sh [NAME]
set -eu
cd "$(dirname "$0")/.."

engines() {
	find . -name testdata -prune -o -name .git -prune -o -name conformance_test.go -print |
		sed -e 's|/conformance_test.go$||' -e 's|^\./||' | sort
}

if [ $# -eq 0 ] || [ -z "$1" ]; then
	engines
	exit
fi
want=$(echo "$1" | sed -e 's|^\./||' -e 's|/$||' -e 's|^postgres$|pg|' -e 's|^postgresql$|pg|' -e 's|^zookeeper$|zk|' -e 's|^mariadb$|mysql|')
for dir in $(engines); do
	case $dir in
	"$want" | "${want}lock" | */"$want")
		echo "$dir"
		exit
		;;
	esac
done
echo "no engine $want; there are: $(engines | tr '\n' ' ')" >&2
exit 64
