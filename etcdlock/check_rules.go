// The checks of what a cluster is: version, leader, alarms, rights, members, session and latency. Each reports false if
// the servers have not told enough. check.go has the list.

package etcdlock

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// oldestMinor is the first minor version 3.x that lets clients choose the numbers of watches, as listener.go does.
const oldestMinor = 4

// revokesLate reports whether a server of that version may revoke leases after it has stood still as the leader and has
// lost that role (etcd #15247).
func revokesLate(version string) bool {
	var minor, patch int
	n, _ := fmt.Sscanf(version, "3.%d.%d", &minor, &patch)
	return n == 2 && (minor < 4 || minor == 4 && patch < 31 || minor == 5 && patch < 13)
}

// checkVersion: waiting must be known to work with the version of each endpoint.
func (f *facts) checkVersion() (driver.Finding, bool) {
	var versions []string
	old := false
	// Each endpoint is asked, because a cluster in the middle of an upgrade has several versions.
	for _, s := range f.answered() {
		versions = append(versions, s.Version)
		major, rest, _ := strings.Cut(s.Version, ".")
		minor, _, _ := strings.Cut(rest, ".")
		m, err := strconv.Atoi(minor)
		old = old || err != nil || major != "3" || m < oldestMinor
	}
	slices.Sort(versions)
	revoking := slices.ContainsFunc(versions, revokesLate)
	all := strings.Join(slices.Compact(versions), ", ")
	switch {
	case all == "":
		return driver.Finding{}, false
	case old:
		return enginekit.Fail("version", "run etcd 3.4 or later",
			"the servers are of version %s, of which waiting is not known to work", all), true
	// A cluster of one has no other leader to renew with.
	case revoking && f.members != nil && len(f.members.Members) > 1:
		return enginekit.Warn("version", "run etcd 3.5.13, 3.4.31 or later",
			"the servers are of version %s: a leader that stood still, for a slow disk for instance, ends sessions "+
				"that were renewed with its successor meanwhile, so that for a moment two may believe that they hold "+
				"a lock (etcd #15247)", all), true
	}
	return enginekit.Fine("version", "the servers are of version %s", all), true
}

// checkLeader: without a leader that a majority follows, nothing is granted and no session is kept.
func (f *facts) checkLeader() (driver.Finding, bool) {
	leaders := map[uint64]bool{}
	for _, s := range f.answered() {
		leaders[s.Leader] = true
	}
	switch {
	case len(leaders) == 0:
		return driver.Finding{}, false
	// A member without a leader names the member 0.
	case leaders[0]:
		return enginekit.Fail("leader", "see whether most members run and reach each other",
			"an endpoint knows no leader"), true
	case len(leaders) > 1:
		return enginekit.Warn("leader", "ask again; if it stays so, see whether the endpoints are of one cluster",
			"the endpoints name %d leaders", len(leaders)), true
	}
	return enginekit.Fine("leader", "all who answer follow one leader"), true
}

// checkAlarms: an alarm makes the cluster refuse some requests, until an operator clears it.
func (f *facts) checkAlarms() (driver.Finding, bool) {
	if f.alarms == nil {
		return driver.Finding{}, false
	}
	var names []string
	for _, a := range f.alarms.Alarms {
		names = append(names, fmt.Sprintf("%s of member %x", a.Alarm, a.MemberID))
	}
	for _, a := range f.alarms.Alarms {
		// A full database stops all writes. Every other alarm is told as it is.
		if a.Alarm == pb.AlarmType_NOSPACE {
			return enginekit.Fail("alarms", "compact and defragment, or raise --quota-backend-bytes; then etcdctl "+
				"alarm disarm",
				"the database is full, so no lock can be taken: %s", strings.Join(names, ", ")), true
		}
	}
	if len(names) > 0 {
		return enginekit.Fail("alarms", "see etcd's documentation on alarms", "there are alarms: %s",
			strings.Join(names, ", ")), true
	}
	return enginekit.Fine("alarms", "there is no alarm"), true
}

// checkRights judges whether the keys of the locks could be read.
func (f *facts) checkRights() (driver.Finding, bool) {
	switch {
	case f.readErr == nil:
		return enginekit.Fine("rights", "keys that begin with %q can be read", f.prefix), true
	case isForbidden(f.readErr):
		return enginekit.Fail("rights", fmt.Sprintf("let the user read and write the keys that begin with %q",
			f.prefix),
			"keys that begin with %q cannot be read: %v", f.prefix, f.readErr), true
	}
	return enginekit.Fail("rights", "see the other findings", "keys that begin with %q cannot be read: %v", f.prefix,
		f.readErr), true
}

// checkMembers says how many members may fail, and whether the client knows all of them. An even number is warned of
// because it needs one more vote than the odd number below it and survives no further loss.
func (f *facts) checkMembers() (driver.Finding, bool) {
	if f.members == nil {
		return driver.Finding{}, false
	}
	voters := 0
	for _, m := range f.members.Members {
		if !m.IsLearner {
			voters++
		}
	}
	// Learners do not vote, so they do not count.
	switch {
	case voters == 1:
		return enginekit.Warn("members", "run three",
			"there is one member: while it is away no lock is granted, and sessions end"), true
	case voters%2 == 0:
		return enginekit.Warn("members", fmt.Sprintf("run %d", voters+1),
			"there are %d members, which survive the loss of no more than %d would", voters, voters-1), true
	case len(f.endpoints) < voters:
		return enginekit.Warn("members", "name all members in the URL",
			"there are %d members, of which the client knows %d: if those are away, so are its locks", voters,
			len(f.endpoints)), true
	}
	return enginekit.Fine("members", "there are %d members, of which %d may be away", voters, (voters-1)/2), true
}

// checkSession compares the session's timeout with the one that was asked for: servers have a smallest one.
func (f *facts) checkSession() (driver.Finding, bool) {
	if f.granted > f.asked {
		return enginekit.Warn("session", "lower the servers' --election-timeout, or ask for no less",
			"the servers have made %v of a session of %v: so long others wait for the dead", f.granted, f.asked), true
	}
	return enginekit.Fine("session", "sessions last %v", f.granted), true
}

// slowPart divides a session's timeout: a round trip beyond that part is slow. Each sign of life has a sixth of the
// timeout.
const slowPart = 20

// checkLatency compares the round trips with what signs of life have time for.
func (f *facts) checkLatency() (driver.Finding, bool) {
	if len(f.trips) == 0 {
		return driver.Finding{}, false
	}
	median := f.trips[len(f.trips)/2].Round(10 * time.Microsecond)
	longest := f.trips[len(f.trips)-1].Round(10 * time.Microsecond)
	if longest > f.granted/slowPart {
		return enginekit.Warn("latency", "ask for longer leases, or bring client and servers closer",
			"a read takes %v (longest %v), much of a session of %v", median, longest, f.granted), true
	}
	return enginekit.Fine("latency", "a read takes %v (longest %v)", median, longest), true
}
