// Whether the servers of the list are one ensemble. Several that stand alone would each grant the same lock. The keeper
// asks before a session is used; check.go judges the same for operators.
//
// ZooKeeper has no name for an ensemble. But servers of one have the same nodes, and each session has a node that no
// other store has: a server that does not know it keeps locks of its own. The question costs a session at each server,
// so it is asked only if the servers themselves name fewer members than the list has.

package zklock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// errStrangers says that servers of the list do not belong together.
var errStrangers = errors.New("the list names servers that are not of one ensemble, and each of them would grant the " +
	"same lock")

const (
	// visitTime bounds the question to the other servers of the list. They are asked at the same time, and one that is
	// silent is passed over.
	visitTime = time.Second

	// strangersPause is the pause until servers that do not belong together are asked again.
	strangersPause = 5 * time.Second

	membersPath = "/zookeeper/config"
)

// checkEnsemble returns an error that matches errStrangers if another server of the list does not know the node of the
// session. Servers that do not answer are passed over: they are asked again by the next session.
func (l *link) checkEnsemble(ctx context.Context) error {
	hosts := l.s.d.hosts
	if len(hosts) < 2 {
		return nil
	}
	config, err := l.get(ctx, membersPath)
	if !answered(err) {
		return err
	}
	// A server that stands alone names nobody, and one before 3.5 has no such node.
	if strings.Count("\n"+string(config.data), "\nserver.") >= len(hosts) {
		return nil
	}
	mine, err := l.get(ctx, l.node)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, visitTime)
	defer cancel()
	strange := make([]bool, len(hosts))
	var all sync.WaitGroup
	for i, host := range hosts {
		all.Go(func() { // ends with the answer, or with ctx
			strange[i] = l.isStrange(ctx, host, mine.stat)
		})
	}
	all.Wait()
	for i, host := range hosts {
		if strange[i] {
			return fmt.Errorf("zk: %s does not know what was written to %s: %w", host, l.s.conn.Server(), errStrangers)
		}
	}
	return nil
}

// isStrange reports whether the server at host says that it has no node of this session. mine is that node as the
// session's own server knows it. It has a session of its own there, which it ends.
func (l *link) isStrange(ctx context.Context, host string, mine *zk.Stat) (strange bool) {
	v, err := l.s.d.visit(ctx, host)
	if err != nil {
		return false
	}
	known := make(chan bool, 1) // buffered, so that the goroutine ends in any case
	l.s.d.spawn(func() {        // ends with the answers, or when the visit is over
		// A follower may not have heard of the node yet.
		if _, err := v.conn.Sync(l.node); err != nil {
			return
		}
		if there, stat, err := v.conn.Exists(l.node); err == nil {
			known <- there && stat.Czxid == mine.Czxid && stat.EphemeralOwner == mine.EphemeralOwner
		}
	})
	defer l.s.d.bid(v)
	select {
	case is := <-known:
		return !is
	case <-ctx.Done():
		return false
	}
}

// visitor is a session with one server, for a single question.
type visitor struct {
	line *line
	conn *zk.Conn
}

// visit connects to the server at host, and blocks until it has a session there or ctx ends.
func (d *Driver) visit(ctx context.Context, host string) (visitor, error) {
	v := visitor{line: newLine(d.life, []string{host}, &d.opts)}
	v.line.returns = func() {} // it holds nothing
	greeted := make(chan struct{}, 1)
	var err error
	v.conn, _, err = zk.Connect(v.line.hosts, d.opts.Timeout,
		zk.WithDialer(v.line.dial), zk.WithHostProvider(v.line), zk.WithLogger(silent{}), zk.WithLogInfo(false),
		zk.WithMaxConnBufferSize(visitBuffer), zk.WithMaxBufferSize(visitBuffer),
		zk.WithEventCallback(func(ev zk.Event) {
			if ev.State == zk.StateHasSession {
				select {
				case greeted <- struct{}{}:
				default: // it is known
				}
			}
		}))
	if err != nil {
		v.line.hangUp()
		return v, err
	}
	select {
	case <-greeted:
		return v, nil
	case <-ctx.Done():
		d.bid(v)
		return v, ctx.Err()
	}
}

// visitBuffer has room for requests that name one path.
const visitBuffer = 16 << 10

// bid has the visitor leave in the background, or at once if the driver is closed: no goroutine begins then, and the
// library's session would stay.
func (d *Driver) bid(v visitor) {
	if !d.spawn(v.leave) {
		v.leave()
	}
}

// leave ends the session. It blocks for a second at most, if the server is silent by now.
func (v visitor) leave() {
	v.conn.Close()
	v.line.hangUp()
	v.line.cut()
}
