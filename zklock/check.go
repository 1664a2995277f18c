// Diagnose: the judgements about servers and session.
//
// A server is judged by what it says of itself, and the session by what it does. Neither takes part in a lock, so a
// doctor can be run beside a service that is in trouble.

package zklock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
)

// diagnosisTime bounds Diagnose: hanging servers must not make their clients hang.
const diagnosisTime = 8 * time.Second

// checksPage explains the checks.
const checksPage = "docs/doctor.md#findings-on-zookeeper"

// Diagnose asks every server of the list who it is, and the session how it is, and judges what locks depend on.
// Failures come first. It changes nothing, and ends after 8 seconds even if servers hang.
//
// It uses the command srvr, which ZooKeeper allows unless 4lw.commands.whitelist says otherwise, and conf and cons if
// they are allowed.
func (d *Driver) Diagnose(ctx context.Context) []driver.Finding {
	ctx, cancel := context.WithTimeout(ctx, diagnosisTime)
	defer cancel()
	if d.isClosed() {
		closed := enginekit.Fail("servers", "open it again", "the driver is closed")
		return enginekit.Explained(checksPage, []driver.Finding{closed})
	}
	servers := d.askServers(ctx)
	findings := checkServers(servers)
	findings = append(findings, d.checkSession(ctx)...)
	return enginekit.Explained(checksPage, findings)
}

// checkServers judges what the servers have said of themselves.
func checkServers(servers []serverFacts) []driver.Finding {
	var silent, secretive, modes []string
	oldest := ""
	for _, s := range servers {
		switch {
		case s.err != nil:
			silent = append(silent, fmt.Sprintf("%s (%v)", s.addr, s.err))
		// A server that answers without its mode has the command switched off.
		case s.mode == "":
			secretive = append(secretive, s.addr)
		default:
			modes = append(modes, s.mode)
			if oldest == "" || olderThan(s.version, oldest) {
				oldest = s.version
			}
		}
	}
	findings := []driver.Finding{checkSilent(silent, len(servers))}
	if len(secretive) > 0 {
		findings = append(findings, enginekit.Warn("servers",
			"add srvr to 4lw.commands.whitelist, or check version and roles by hand",
			"%s: the command srvr is not allowed", strings.Join(secretive, ", ")))
	}
	if len(modes) == 0 {
		return findings
	}
	findings = append(findings, checkModes(modes, len(servers)), checkVersion(oldest))
	return append(findings, checkClients(servers)...)
}

// fullClients is the share of maxClientCnxns, in percent, from which on it counts as nearly reached.
const fullClients = 80

// checkClients looks at the server with the least room for connections of this machine. Only that one is reported: the
// others are no worse.
func checkClients(servers []serverFacts) []driver.Finding {
	var least *serverFacts
	for i := range servers {
		s := &servers[i]
		// A server may set no limit, which it tells as zero.
		if s.most > 0 && (least == nil || s.most-s.ours < least.most-least.ours) {
			least = s
		}
	}
	switch {
	case least == nil:
		return nil
	case least.ours*100 >= least.most*fullClients:
		return []driver.Finding{enginekit.Warn("clients",
			"raise maxClientCnxns in zoo.cfg, or share a client within each process",
			"%d of %d connections of this machine to %s are in use (maxClientCnxns): beyond them nobody can connect",
			least.ours, least.most, least.addr)}
	}
	return []driver.Finding{enginekit.Fine("clients",
		"%d of %d connections of this machine to %s are in use (maxClientCnxns)", least.ours, least.most, least.addr)}
}

// checkSilent judges how many of the listed servers answer.
func checkSilent(silent []string, all int) driver.Finding {
	const advice = "check the address, the network and the server; a server without a leader answers nobody"
	list := strings.Join(silent, ", ")
	switch len(silent) {
	case 0:
		return enginekit.Fine("servers", "all %d that are listed answer", all)
	case all:
		return enginekit.Fail("servers", advice, "nobody answers: %s", list)
	}
	return enginekit.Warn("servers", advice, "%d of %d do not answer: %s", len(silent), all, list)
}

// checkModes judges the roles that the servers have. Several servers that each stand alone would grant a lock several
// times, because each client may be connected to another of them.
func checkModes(modes []string, listed int) driver.Finding {
	switch {
	case slices.Contains(modes, "standalone") && len(modes) > 1:
		return enginekit.Fail("ensemble", "servers of one ensemble have server.N lines for each other in zoo.cfg",
			"servers of the list stand alone: two clients may be told that they have the same lock")
	case slices.Contains(modes, "standalone"):
		return enginekit.Warn("ensemble", "run three or five servers where locks must outlive one of them",
			"one server that stands alone: while it is away no lock is taken or given back, and holds are trusted no "+
				"longer "+
				"than the session's timeout")
	case listed == 1:
		return enginekit.Warn("ensemble", "list all servers in the URL",
			"one server of an ensemble is listed: without it this client has none")
	// With an even number, a majority is one more than half, as with one server more.
	case listed%2 == 0:
		return enginekit.Warn("ensemble", "run an odd number",
			"%d servers are listed: as many may fail as with one fewer", listed)
	}
	return enginekit.Fine("ensemble", "%s", strings.Join(modes, ", "))
}

// firstContainers is the first version that removes empty container nodes by itself.
const firstContainers = "3.5"

// checkVersion judges the oldest version among the servers: any of them may serve this client. A version that cannot be
// read counts as new: a warning without a reason is worse than none.
func checkVersion(oldest string) driver.Finding {
	if olderThan(oldest, firstContainers) {
		return enginekit.Warn("version", "use 3.5 or later; the tests run on 3.8",
			"%s knows no container nodes: the driver removes the nodes of free locks itself, and those of a client "+
				"that dies stay",
			oldest)
	}
	return enginekit.Fine("version", "%s", oldest)
}

// checkSession judges the session: its timeout, how fast the leader answers, and who may write below the root. The best
// of five round trips is compared: what a busy moment adds is no property of the ensemble.
func (d *Driver) checkSession(ctx context.Context) []driver.Finding {
	l, err := d.ready(ctx, nil, diagnosisTime, true)
	if err != nil {
		return []driver.Finding{enginekit.Fail("session", "see the other findings", "there is none: %v", err)}
	}
	findings := []driver.Finding{d.checkTimeout(l)}
	var best time.Duration
	for range 5 {
		sent := time.Now()
		// A transaction, as a lock is one.
		if err := l.agree(ctx); err != nil {
			return append(findings, enginekit.Fail("latency", "see whether the servers hang",
				"the leader does not answer: %v", err))
		}
		if trip := time.Since(sent); best == 0 || trip < best {
			best = trip
		}
	}
	return append(findings, checkLatency(best, l.s.timeout), d.checkAccess(ctx, l))
}

// checkTimeout compares the negotiated timeout with the one that was asked for. A shorter one loses holds earlier than
// the user expects.
func (d *Driver) checkTimeout(l *link) driver.Finding {
	if asked := d.opts.Timeout; l.s.timeout != asked {
		return enginekit.Warn("session", "set minSessionTimeout or maxSessionTimeout in zoo.cfg (2 and 20 ticks "+
			"unless set), or ask for another Lease",
			"the session's timeout is %v although %v was asked for", l.s.timeout, asked)
	}
	return enginekit.Fine("session", "its timeout is %v", l.s.timeout)
}

// checkLatency compares the leader's answer with the timeout that signs of life must keep.
func checkLatency(best, timeout time.Duration) driver.Finding {
	if best > timeout/10 {
		return enginekit.Warn("latency", "ask for a longer Lease, or look at the load and the disks of the servers",
			"the leader answers in %v at best, which is much for a timeout of %v", best.Round(time.Microsecond),
			timeout)
	}
	return enginekit.Fine("latency", "the leader answers in %v", best.Round(time.Microsecond))
}

// checkAccess looks who may write below the root: with such a right anybody can end a hold.
func (d *Driver) checkAccess(ctx context.Context, l *link) driver.Finding {
	path := d.tree.root
	if path == "" {
		path = "/"
	}
	acl, err := ask(ctx, l, func(c *zk.Conn) ([]zk.ACL, error) {
		acl, _, err := c.GetACL(path)
		return acl, err
	})
	switch {
	case errors.Is(err, zk.ErrNoAuth): // the ACL itself is not readable, so it is not open
		return enginekit.Fine("access", "only others may read the ACL of %s", path)
	case err != nil:
		return enginekit.Warn("access", "", "the ACL of %s cannot be read: %v", path, err)
	}
	const harmful = zk.PermWrite | zk.PermCreate | zk.PermDelete | zk.PermAdmin
	for _, a := range acl {
		if a.Scheme != "world" || a.Perms&harmful == 0 {
			continue
		}
		if d.opts.User == "" {
			return enginekit.Fine("access", "everybody who reaches the servers may write below %s", path)
		}
		return enginekit.Warn("access", "set an ACL on it, or remove it while nobody uses it: the driver makes it "+
			"with its own",
			"everybody may write below %s, although a user is set", path)
	}
	return enginekit.Fine("access", "%s is not open to everybody", path)
}

// The questions to the servers for Diagnose: commands of four letters, over connections of their own.
//
// The commands need no session, so they also reach a server that grants none because it has no leader. They go to each
// server and not through the library, which would choose one.

// serverFacts are what one server says of itself.
type serverFacts struct {
	addr    string
	mode    string // leader, follower, observer or standalone; empty if the server may not say
	version string
	most    int   // maxClientCnxns; 0 if there is no limit, or the server may not say
	ours    int   // connections from this machine's address
	err     error // why the server did not answer at all
}

// factTime bounds the question to one server. It is less than half of diagnosisTime, so the session can still be judged
// when all servers are silent.
const factTime = 3 * time.Second

// askServers asks all servers of the list at once. It blocks for factTime at most.
func (d *Driver) askServers(ctx context.Context) []serverFacts {
	facts := make([]serverFacts, len(d.hosts))
	var all sync.WaitGroup
	for i, addr := range d.hosts {
		all.Go(func() { // ends with the answer, or after factTime
			facts[i] = d.askServer(ctx, addr)
		})
	}
	all.Wait()
	return facts
}

// askServer asks one server. Only srvr must be answered; the other commands may be forbidden.
func (d *Driver) askServer(ctx context.Context, addr string) serverFacts {
	ctx, cancel := context.WithTimeout(ctx, factTime)
	defer cancel()
	// srvr comes first: without its answer the server is silent, and the others would only wait as long again.
	f := serverFacts{addr: addr}
	var answer string
	if answer, _, f.err = d.command(ctx, addr, "srvr"); f.err != nil {
		return f
	}
	f.mode, f.version = field(answer, "Mode: "), version(field(answer, "Zookeeper version: "))
	// A server that may not say is taken for one without a limit.
	answer, _, _ = d.command(ctx, addr, "conf")
	// The limit is one for each address, so only the connections of this machine count.
	if f.most, _ = strconv.Atoi(field(answer, "maxClientCnxns=")); f.most > 0 {
		answer, from, _ := d.command(ctx, addr, "cons")
		f.ours = strings.Count(answer, " /"+from+":")
	}
	return f
}

// command sends a command of four letters over a connection of its own, and says from which address that came: the
// server lists its clients by address.
func (d *Driver) command(ctx context.Context, addr, letters string) (answer, from string, err error) {
	return command(ctx, d.opts.TLS, addr, letters)
}

// field returns the rest of the line that begins with name, or "".
func field(answer, name string) string {
	for line := range strings.Lines(answer) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

// version cuts 3.8.0 out of 3.8.0-5a02a05eddb59aee6ac762f7ea82e92a68eb9c0f, built on 2022-02-25 08:49 UTC.
func version(text string) string {
	if end := strings.IndexAny(text, "-, "); end >= 0 {
		return text[:end]
	}
	return text
}

// olderThan compares versions, number by number. It reports false for versions that it cannot read.
func olderThan(a, b string) bool {
	one, two := strings.Split(a, "."), strings.Split(b, ".")
	for i := range min(len(one), len(two)) {
		x, errX := strconv.Atoi(one[i])
		y, errY := strconv.Atoi(two[i])
		if errX != nil || errY != nil {
			return false
		}
		if x != y {
			return x < y
		}
	}
	return false
}
