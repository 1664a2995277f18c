// Diagnose: which member is asked for what.
//
// Every question has its own time limit and every answer may be missing. A check whose facts are missing is left out:
// it must neither alarm nor reassure. Each answer is written by one goroutine and read when that has ended.

package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// diagnosisTime bounds Diagnose, and statusTime the question to one endpoint: hanging servers must not make their
// clients hang.
const diagnosisTime, statusTime = 5 * time.Second, 1500 * time.Millisecond

// checksPage explains the checks.
const checksPage = "docs/doctor.md#findings-on-etcd"

// Diagnose asks every endpoint for its state, and the cluster for its members and alarms, and judges what locks depend
// on: who answers, version, leader, alarms, the size of the database and of its history, the number of members, the
// session's timeout, rights, and how long a round trip takes. Failures come first. It changes nothing, and ends after 5
// seconds if servers hang.
func (d *Driver) Diagnose(ctx context.Context) []driver.Finding {
	bounded, leave, err := d.enterCall(ctx)
	if err != nil {
		return enginekit.Explained(checksPage, []driver.Finding{enginekit.Fail("servers", "open it again", "%v", err)})
	}
	defer leave()
	bounded, cancel := context.WithTimeout(bounded, diagnosisTime)
	defer cancel()
	return enginekit.Explained(checksPage, d.gather(bounded).judge())
}

// facts are what the servers have said. A field that they have not told is nil or zero, and an error says why.
type facts struct {
	endpoints []*endpointFacts
	members   *clientv3.MemberListResponse
	alarms    *clientv3.AlarmResponse
	hidden    []string // what the user may not see of the cluster
	readErr   error
	revision  int64           // the cluster's revision; 0 if no server has told it
	compacted bool            // the history does not begin with the first revision
	trips     []time.Duration // of reads, the shortest first
	asked     time.Duration   // the session's timeout as it was asked for
	granted   time.Duration   // and as it was granted
	prefix    string
}

// endpointFacts are what one endpoint has said of itself.
type endpointFacts struct {
	addr   string
	status *clientv3.StatusResponse
	err    error
}

// ask connects to the endpoint alone and asks for its state. The client library says only that the time is over when it
// cannot connect, so the reason is looked for by hand.
func (e *endpointFacts) ask(ctx context.Context, client *clientv3.Client) {
	once, cancel := context.WithTimeout(ctx, statusTime)
	defer cancel()
	if e.status, e.err = client.Status(once, e.addr); e.answers() {
		return
	}
	host := e.addr
	if _, rest, has := strings.Cut(host, "://"); has {
		host = rest
	}
	if why := probeOne(ctx, host, nil); why != nil {
		e.err = why
	}
}

// answers reports whether the endpoint has answered. From etcd 3.6 on servers tell their state to the role root alone,
// and refuse all others: that is an answer.
func (e *endpointFacts) answers() bool { return e.err == nil || isForbidden(e.err) }

// tripsTaken is how often the time of a round trip is taken. Their median tells the usual time, and the longest whether
// it varies; a single one might be an outlier.
const tripsTaken = 5

// gather asks all endpoints and the cluster at once.
func (d *Driver) gather(ctx context.Context) *facts {
	f := &facts{asked: time.Duration(seconds(d.opts.Session)) * time.Second, granted: d.timeout, prefix: d.opts.Prefix}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var endpoints, all sync.WaitGroup
	for _, addr := range d.client.Endpoints() {
		e := &endpointFacts{addr: addr}
		f.endpoints = append(f.endpoints, e)
		endpoints.Go(func() { e.ask(ctx, d.client) })
	}
	// What cannot be asked is left out; if a right is missing, checkPermissions says so.
	var membersErr, alarmsErr error
	all.Go(func() { f.members, membersErr = d.client.MemberList(ctx) })
	all.Go(func() { f.alarms, alarmsErr = d.client.AlarmList(ctx) })
	all.Go(func() { f.askHistory(ctx, d.client, d.opts.Prefix) })
	all.Go(func() {
		for range tripsTaken {
			sent := time.Now()
			if _, f.readErr = d.client.Get(ctx, d.opts.Prefix, clientv3.WithPrefix(), clientv3.WithLimit(1),
				clientv3.WithKeysOnly()); f.readErr != nil {
				return
			}
			f.trips = append(f.trips, time.Since(sent))
		}
		slices.Sort(f.trips)
	})
	endpoints.Wait()
	// Then nobody will answer the rest either, and the user need not wait for it.
	if !slices.ContainsFunc(f.endpoints, (*endpointFacts).answers) {
		cancel()
	}
	all.Wait()
	if isForbidden(membersErr) {
		f.hidden = append(f.hidden, "members")
	}
	if isForbidden(alarmsErr) {
		f.hidden = append(f.hidden, "alarms")
	}
	return f
}

// askHistory reads a key as it was at the first revision. Only a cluster that was never compacted can answer that.
func (f *facts) askHistory(ctx context.Context, client *clientv3.Client, prefix string) {
	switch r, err := client.Get(ctx, prefix, clientv3.WithRev(1)); {
	case err == nil:
		f.revision = r.Header.Revision
	case errors.Is(err, rpctypes.ErrCompacted):
		f.compacted = true
	}
}

// judge runs all checks. Those whose failure explains the failures of others come first.
func (f *facts) judge() (findings []driver.Finding) {
	for _, check := range []func() (driver.Finding, bool){
		f.checkServers, f.checkVersion, f.checkLeader, f.checkAlarms, f.checkSpace, f.checkHistory, f.checkRights,
		f.checkMembers, f.checkSession, f.checkLatency, f.checkPermissions,
	} {
		if finding, known := check(); known {
			findings = append(findings, finding)
		}
	}
	return findings
}

// checkServers says which endpoints answer.
func (f *facts) checkServers() (driver.Finding, bool) {
	var silent, learners []string
	for _, e := range f.endpoints {
		switch {
		case !e.answers():
			silent = append(silent, fmt.Sprintf("%s (%v)", e.addr, e.err))
		case e.status != nil && e.status.IsLearner:
			learners = append(learners, e.addr)
		}
	}
	const advice = "check the address, the network and the server"
	switch n := len(f.endpoints); {
	case len(silent) == n:
		return enginekit.Fail("servers", advice, "no endpoint answers: %s", strings.Join(silent, ", ")), true
	case len(silent) > 0:
		return enginekit.Warn("servers", advice, "%d of %d endpoints do not answer: %s", len(silent), n,
			strings.Join(silent, ", ")), true
	case len(learners) > 0:
		return enginekit.Warn("servers", "promote it (etcdctl member promote), or take it out of the URL",
			"a learner serves no locks: %s", strings.Join(learners, ", ")), true
	default:
		return enginekit.Fine("servers", "all %d endpoints answer", n), true
	}
}

// answered returns the states of the endpoints that tell it.
func (f *facts) answered() (all []*clientv3.StatusResponse) {
	for _, e := range f.endpoints {
		if e.status != nil {
			all = append(all, e.status)
		}
	}
	return all
}

// The checks of what a cluster is: version, leader, alarms, rights, members, session and latency. Each reports false if
// the servers have not told enough.

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

// The checks of space and history, and of what the user may not see.
//
// A cluster that fills up is the usual way in which etcd stops serving locks: its history grows with each lock and
// unlock until it is compacted. So space and history are warned of before they fail.

const (
	// usualQuota is etcd's quota if --quota-backend-bytes is not set, in bytes. Servers before 3.6 do not tell theirs.
	usualQuota = 2 << 30

	// fullSpace is the share of the quota, in percent, from which on a database counts as nearly full.
	fullSpace = 80

	// longHistory is the number of revisions from which on a cluster should have been compacted: with two revisions for
	// each turn of a lock, that is some thousand turns.
	longHistory = 10_000
)

// checkSpace: a database that has reached its quota grants nothing. The fullest one counts.
func (f *facts) checkSpace() (driver.Finding, bool) {
	var size, quota int64
	told := ""
	for _, s := range f.answered() {
		most, how := s.DbSizeQuota, ""
		// Versions before 3.6 do not tell their quota.
		if most <= 0 {
			most, how = usualQuota, " by etcd's default"
		}
		// Members are compared by how full they are, not by size, because their quotas may differ.
		if quota == 0 || float64(s.DbSize)/float64(most) > float64(size)/float64(quota) {
			size, quota, told = s.DbSize, most, how
		}
	}
	const mib = 1 << 20
	switch {
	case quota == 0:
		return driver.Finding{}, false
	case size >= quota/100*fullSpace:
		return enginekit.Warn("space", "compact and defragment, or raise --quota-backend-bytes",
			"the database has %d of %d MiB%s: a full one grants nothing", size/mib, quota/mib, told), true
	}
	return enginekit.Fine("space", "the database has %d of %d MiB%s", size/mib, quota/mib, told), true
}

// checkHistory: reading a queue costs the servers time in proportion to the history of its keys.
func (f *facts) checkHistory() (driver.Finding, bool) {
	switch {
	case f.compacted:
		return enginekit.Fine("history", "it is compacted"), true
	case f.revision == 0:
		return driver.Finding{}, false
	case f.revision >= longHistory:
		return enginekit.Warn("history", "set --auto-compaction-retention on all servers, for instance to 1h",
			"none of the %d revisions was ever compacted: that fills the disk and slows queues down", f.revision), true
	}
	return enginekit.Fine("history", "%d revisions, too few to tell whether they are compacted", f.revision), true
}

// checkPermissions says what was not checked because the user may not see it.
func (f *facts) checkPermissions() (driver.Finding, bool) {
	hidden := f.hidden
	if slices.ContainsFunc(f.endpoints, func(e *endpointFacts) bool { return isForbidden(e.err) }) {
		hidden = append([]string{"version", "leader", "space"}, hidden...)
	}
	if len(hidden) == 0 {
		return driver.Finding{}, false
	}
	return enginekit.Warn("permissions", "run interlock doctor once as a user with the role root",
		"not checked: %s; the user may not see that", strings.Join(hidden, ", ")), true
}

// isForbidden reports whether the servers say that the user lacks a right, or that there is no user.
func isForbidden(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "permission denied") ||
		strings.Contains(err.Error(), "user name is empty"))
}
