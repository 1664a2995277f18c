// The questions to the servers for Diagnose: commands of four letters, over connections of their own. check.go judges
// the answers.
//
// The commands need no session, so they also reach a server that grants none because it has no leader. They go to each
// server and not through the library, which would choose one.

package zklock

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

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

// command is the method of that name, with TLS if config is not nil.
func command(ctx context.Context, config *tls.Config, addr, letters string) (answer, from string, err error) {
	conn, err := openConn(ctx, config, "tcp", addr)
	if err != nil {
		return "", "", err
	}
	from, _, _ = net.SplitHostPort(conn.LocalAddr().String())
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // ends a read that waits for the server
	defer stop()
	defer conn.Close()
	if _, err := io.WriteString(conn, letters); err != nil {
		return "", from, err
	}
	// The server ends the connection after its answer. The bound, 1 MiB, is for a port on which something else answers
	// without an end.
	text, err := io.ReadAll(io.LimitReader(conn, 1<<20))
	if ctx.Err() != nil {
		return "", from, ctx.Err()
	}
	if len(text) > 0 { // TLS connections end without a proper close here
		err = nil
	}
	return string(text), from, err
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
