// The session: making, trusting, losing and revoking it. heartbeat.go keeps it alive, notices.go watches its holds;
// enqueue.go joins requests to it.
//
// When a session counts is decided by this process alone: from the sending of the last sign of life that counts, for
// the timeout. One counts if it was answered, and if a majority has shown that the answer came from the leader; see
// pacemaker.beat. The servers count from the arrival of the same message, which is later, so they never free a lock
// that is still trusted here. The exceptions, an operator's revocation and the leaders of etcd #15247, are in doc.go.
// This needs no common clock, only clocks that run at the same speed; the drift allowance is the portable layer's.

package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// session is an etcd lease with our own bookkeeping. Everything that this driver holds or waits for is attached to it.
// A driver has one at a time, and makes another when it is lost. It does not depend on the context of any request.
type session struct {
	d       *Driver
	id      clientv3.LeaseID
	timeout time.Duration
	began   int64 // the revision at which its key was created; see names.alive

	// The portable layer reads it for each hold, so it takes no mutex.
	confirmed atomic.Int64 // when the last sign of life that counts was sent, in nanoseconds since Driver.born
	// Waiters, the heartbeat and the watch on notices end with it, without the mutex.
	done chan struct{} // closed when it is lost
	// Buffer of one: the holds must be checked. It passes the session's own keys, as they were read.
	look chan *clientv3.GetResponse

	// Driver.mu guards these.
	lost  error                 // why it is over; nil if it is not
	holds map[int64]*entry      // by the revisions at which their keys were created
	calls map[int64]int64       // calls for holds that are not known yet: by the hold's revision, with the call's
	slots map[driver.Key]*slots // the numbers of its keys, by lock
	// Releases and withdrawals that the servers refuse; see retire.go.
	refused enginekit.Refusals[holdID]
}

var _ driver.Session = (*session)(nil)

// Confirmed returns when the last sign of life that counts was sent: trust counts from there.
func (s *session) Confirmed() time.Time { return s.d.born.Add(time.Duration(s.confirmed.Load())) }

// confirm records that a sign of life which was sent at that instant counts.
func (s *session) confirm(sent time.Time) { s.confirmed.Store(int64(sent.Sub(s.d.born))) }

// end is when the servers may give away what the session holds.
func (s *session) end() time.Time { return s.Confirmed().Add(s.timeout) }

// session returns the driver's session, and makes one if there is none; it blocks for that. If the making fails, that
// is the answer to callers that asked before it began, and to no others: what stood in the way may have gone before
// those came. A caller that came while an attempt was under way gets one more attempt, and no third.
func (d *Driver) session(ctx context.Context) (*session, error) {
	for later := false; ; later = true {
		s, making, begun, err := d.currentSession()
		if s != nil || err != nil {
			return s, err
		}
		select {
		case <-making.done:
			if making.err != nil && (begun || later) {
				return nil, d.failure(ctx, making.err)
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// making is the making of a session, for which several requests may wait. It belongs to the driver and not to the
// caller that began it, whose context may end first.
type making struct {
	done chan struct{}
	err  error // constant once done is closed
}

// currentSession returns the session, or the making of the next one and whether that has begun just now.
func (d *Driver) currentSession() (s *session, m *making, begun bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, nil, false, driver.ErrClosed
	}
	if s := d.current; s != nil && s.lost == nil && time.Now().Before(s.end()) {
		return s, nil, false, nil
	}
	if d.making != nil {
		return nil, d.making, false, nil
	}
	m = &making{done: make(chan struct{})}
	// One making serves all that wait for it: a crowd that has lost its session must not ask for a lease each.
	d.making = m
	d.spawn(func() { // ends with the request, which is bounded
		s, err := d.makeSession()
		d.mu.Lock()
		defer d.mu.Unlock()
		if err == nil && d.closed {
			err = driver.ErrClosed // its lease runs out
		}
		if err == nil {
			d.current = s
			d.sessions[s] = struct{}{}
			d.spawn(func() { s.heartbeat(d.life) })
			d.spawn(func() { s.watchNotices(d.life) })
		}
		m.err, d.making = err, nil
		close(m.done)
	})
	return nil, m, true, nil
}

// makeSession asks for a lease, and attaches the key to it that tells of its end. If an answer is lost, a lease is left
// behind that runs out.
func (d *Driver) makeSession() (*session, error) {
	var sent time.Time
	var granted *clientv3.LeaseGrantResponse
	if _, err := d.ask(d.life, func(ctx context.Context) (err error) {
		sent = time.Now() // trust counts from before the request that was answered
		granted, err = d.client.Grant(ctx, seconds(d.opts.Session))
		return err
	}); err != nil {
		return nil, err
	}
	s := &session{
		d: d, id: granted.ID, timeout: time.Duration(granted.TTL) * time.Second,
		done: make(chan struct{}), look: make(chan *clientv3.GetResponse, 1), holds: make(map[int64]*entry),
		calls: make(map[int64]int64),
		slots: make(map[driver.Key]*slots),
	}
	// The lease counts from here, also while its first key is being put.
	s.confirm(sent)
	// Without that key only the next sign of life would tell of an operator's revocation, up to a third of the timeout
	// later.
	put := clientv3.OpPut(d.names.alive(s.id), "", clientv3.WithLease(s.id))
	answer, _, err := d.commit(d.life, &transaction{then: []clientv3.Op{put}})
	var doubt uncertainError
	if errors.As(err, &doubt) { // about a lease that runs out; of the requests that wait for the session none was sent
		err = doubt.error
	}
	if err != nil {
		return nil, err
	}
	s.began = answer.Header.Revision
	return s, nil
}

// lose ends the session, once: nothing of what it held can be trusted any more. All holds are told before the servers
// are asked to forget them, so that nobody gets in before the holders know.
func (s *session) lose(cause error) {
	d := s.d
	d.mu.Lock()
	if s.lost != nil {
		d.mu.Unlock()
		return
	}
	// Under the mutex in one step with what follows: a grant that is under way (see hold) finds the session lost, or is
	// in holds and is told.
	s.lost = cause
	close(s.done)
	delete(d.sessions, s)
	if d.current == s {
		d.current = nil
	}
	var tell []func(driver.LostReason, error)
	for _, e := range s.holds {
		tell = append(tell, e.inform())
		e.end(driver.LostSession)
	}
	clear(s.holds)
	if d.closed {
		tell = nil
	}
	d.spawn(s.revoke)
	d.mu.Unlock()
	level := slog.LevelWarn
	if errors.Is(cause, errReplaced) { // nobody has lost anything
		level = slog.LevelDebug
	}
	d.opts.Logger.Log(d.life, level, "etcd: the session is lost",
		"session", s.String(), "err", cause, "holds", len(tell))
	for _, f := range tell { // outside of the mutex: it is the users' code
		f(driver.LostSession, cause)
	}
}

// revoke ends the lease, so that nobody waits for what this client does not believe to hold any more. If the servers
// cannot be told, the lease runs out by itself.
func (s *session) revoke() {
	end := time.Now().Add(s.timeout)
	for pause := firstPause; time.Now().Before(end); pause = min(2*pause, longestPause) {
		ctx, cancel := context.WithTimeout(s.d.life, s.d.opts.RequestTimeout)
		_, err := s.d.client.Revoke(ctx, s.id)
		cancel()
		if err == nil || isRefusal(err) || !enginekit.Pause(s.d.life, pause) {
			return
		}
	}
}

// String names the session as etcdctl does.
func (s *session) String() string { return fmt.Sprintf("%x", int64(s.id)) }
