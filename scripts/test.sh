#!/bin/sh
# Tests every module of the workspace under the race detector.
# usage: test.sh [all | beside | long | check] [argument of go test...]
#   all     every package, its sweeps in their usual size: what a newcomer runs; the default
#   long    the packages whose sweeps in full size judge real time, but for tests in them that judge none, with nothing else
#           beside them; and what drives the sockets of Redis once more without the race detector
#   beside  all others, in full size too: together these two are all, and CI runs both
#   check   what needs neither servers nor the race detector, from the cache: -short
set -eu
cd "$(dirname "$0")/.."
what=all
case ${1:-} in
all | beside | long | check)
	what=$1
	shift
	;;
esac

# judging ends the names of the packages whose full sweeps judge real time. A new one with a sweep (internal/longrun) that fails
# beside others belongs here.
judging='/redislock|/redislock/internal/(resp|rueidisconn)|/torture/cmd/interlock-torture'

# untimed matches those of their tests that judge no real time: beside runs them, and long the others. One expression serves both,
# so that no test is in neither.
untimed='^Test(Conformance|Rules_.*Necessary$|Scripts_|Rights_|Diagnose_|Open_OfWhat|New_OverAServer|Run_|Made_)'

# models ends the names of the packages that search all states of a model, in one goroutine. The race detector has nothing to
# see there and takes six times as long, so they run without it, with the bounds of make check; make simulate has the usual ones.
# make test treats the simulation alike; beside has its runs under the race detector.
models='/internal/(handoff|fencemodel)'

# serial ends the names of others in which the race detector has little to see: what searches the lab's courses and what renders the
# documents do it in one goroutine at a time; the suite that is shown broken engines runs under it on every sound one. They run
# without it too, in the size of the run.
serial='/(lab/internal/search|internal/docsite|drivertest/internal/broken)'

# slow ends the names of the packages that take longest. In make test they begin first, so that none is left alone at the end.
slow='/redislock|/cmd/interlock|/etcdlock|/torture/cmd/interlock-torture|/console/browsertest|/mysqllock|/pglock|/zklock|/examples/observed'

# packages lists those of the workspace that judge real time ($1 is long), or do not ($1 is beside), or all. What runs without the
# race detector is in none.
# "work" is every package of every module of go.work; "./..." would be those of the root module only.
packages() {
	everything=$(GOWORK='' go list work) || return
	rest=$(printf '%s\n' "$everything" | grep -vE "interlock($models|$serial)\$")
	case $1 in
	all) rest=$(printf '%s\n' "$rest" | grep -v 'interlock/internal/sim$') ;;
	long) rest=$(printf '%s\n' "$rest" | grep -E "interlock($judging)\$") ;;
	beside) rest=$(printf '%s\n' "$rest" | grep -vE "interlock($judging)\$") ;;
	esac
	if [ "$1" = all ]; then
		printf '%s\n' "$rest" | grep -E "interlock($slow)\$"
		rest=$(printf '%s\n' "$rest" | grep -vE "interlock($slow)\$")
	fi
	printf '%s\n' "$rest"
}

if [ "$what" = check ]; then
	# Only what compiles within a minute: the clients of servers, that of Redis too, take longer than all of these tests. So does
	# to vet the standard library, which go test would do for the sake of our packages; make lint vets them. More runs at once than
	# there are processors, because tests wait while others are compiled.
	unset INTERLOCK_REQUIRE INTERLOCK_LONG
	GOWORK='' go test -short -vet=off -ldflags=-w -p "$((2 * $(getconf _NPROCESSORS_ONLN)))" "$@" ./... \
		./enginekit/sqlsession/... ./redislock/conn/... ./redislock/internal/resp/... ./redislock/internal/word/...
	exit
fi

race=-race
if [ "$(uname -s)" != Darwin ] && [ "$(go env CGO_ENABLED)" = 0 ]; then
	# Go turns cgo off by itself when there is no C compiler.
	if [ -n "${INTERLOCK_REQUIRE:-}" ]; then
		echo 'test: the race detector needs cgo and a C compiler, and INTERLOCK_REQUIRE is set' >&2
		exit 1
	fi
	echo 'test: no C compiler, so WITHOUT the race detector' >&2
	race=''
fi

# Most tests wait for most of the time, for servers and the ends of leases: so more packages run at once than there are processors,
# and fewer where sweeps have their full size.
# The largest take some minutes; beside other load they may take longer than the ten that go test gives them.
processors=$(getconf _NPROCESSORS_ONLN)
at_once=$((2 * processors))
case $what in
all)
	names=$(packages all) || exit
	at_once=$((3 * processors))
	;;
beside)
	names=$(packages beside) || exit
	others=$(packages long) || exit
	export INTERLOCK_LONG=1
	;;
long)
	# Each lane waits for most of its time, so that two leave each other the processors.
	names=$(packages long | grep '/redislock$') || exit
	others=$(packages long | grep -v '/redislock$') || exit
	export INTERLOCK_LONG=1
	;;
esac
# Under the race detector each process sleeps for a second when it ends, and tests start hundreds.
export GORACE="${GORACE:-atexit_sleep_ms=0}"
# Nobody debugs these programs, which link faster without what a debugger needs; make lint vets.
go_test() {
	GOWORK='' go test -timeout=30m -vet=off -ldflags=-w "$@"
}
# What reads and writes sockets in production (redislock/internal/resp/syscall_linux.go) is not built into tests under the race
# detector, which would not see that what was read comes after what was written. So whatever drives the sockets runs once without
# it: the client (alone in make test), the links over it, and tests of redislock that open it by URL (over), or have it work hard
# or fail (hard).
over=Conformance_URL
hard='Reset_EveryFewMilliseconds ManyGoroutines_ Goroutines_OnOneLock BlackHole_ Hung_'
for test in $over $hard; do
	if ! grep -qr "^func Test$test" redislock/*_test.go; then
		echo "test: redislock has no test Test$test... any more: name another one here" >&2
		exit 1
	fi
done

# $names and $others are lists, so they are split here on purpose.
# shellcheck disable=SC2086
case $what in
all)
	{
		go_test -short "$@" ./internal/handoff ./internal/fencemodel ./internal/sim
		go_test "$@" ./lab/internal/search ./internal/docsite ./drivertest/internal/broken
		[ -z "$race" ] || go_test "$@" ./redislock/internal/resp
	} &
	rc=0
	go_test -p "$at_once" ${race:+"$race"} "$@" $names || rc=$?
	wait "$!" || rc=$?
	exit "$rc"
	;;
beside)
	{
		go_test -short "$@" ./internal/handoff ./internal/fencemodel
		go_test "$@" ./lab/internal/search ./internal/docsite ./drivertest/internal/broken
		go_test ${race:+"$race"} "$@" -run "$untimed" $others
		[ -z "$race" ] || INTERLOCK_LONG='' go_test "$@" -run "^Test$over" ./redislock
	} &
	rc=0
	go_test -p "$at_once" ${race:+"$race"} "$@" $names || rc=$?
	wait "$!" || rc=$?
	exit "$rc"
	;;
long)
	{
		go_test -p 1 ${race:+"$race"} "$@" -skip "$untimed" $others
		if [ -n "$race" ]; then
			go_test "$@" -run Crowd ./internal/sim # the race detector does not bear the goroutines of 10,000 simulated clients
			unset INTERLOCK_LONG
			go_test "$@" ./redislock/internal/resp ./redislock/internal/rueidisconn
			go_test "$@" -run "^Test($(echo "$hard" | tr ' ' '|'))" ./redislock
		fi
	} &
	rc=0
	go_test ${race:+"$race"} "$@" -skip "$untimed" $names || rc=$?
	wait "$!" || rc=$?
	exit "$rc"
	;;
esac
