// Diagnose: which member is asked for what. check_rules.go and check_space.go judge the answers.
//
// Every question has its own time limit and every answer may be missing. A check whose facts are missing is left out:
// it must neither alarm nor reassure. Each answer is written by one goroutine and read when that has ended.

package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
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
