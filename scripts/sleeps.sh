#!/bin/sh
# Fails when a test sleeps in real time without a reason: a sleep is no synchronisation. In a file that uses
# testing/synctest a sleep moves the virtual clock. Elsewhere its line ends with "// virtual" (a helper that runs in a
# bubble) or "// real: REASON" (a workload or a fault).
# usage: sleeps.sh
set -eu
cd "$(dirname "$0")/.."

found=$(find . -name '*_test.go' -not -path '*/testdata/*' | sort | while read -r file; do
	if grep -q '"testing/synctest"' "$file"; then continue; fi
	grep -nH 'time\.Sleep(' "$file" | grep -vE '// (virtual|real: .+)$' || true
done)
if [ -n "$found" ]; then
	printf '%s\n' "$found" >&2
	echo 'sleeps: wait for a channel or a signal, use testing/synctest, or say "// real: REASON" on the line' >&2
	exit 1
fi
