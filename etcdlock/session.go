// The session: making, trusting, losing, revoking and retiring it. heartbeat keeps it alive, notices.go watches its
// holds; acquire.go joins requests to it.
//
// When a session counts is decided by this process alone: from the sending of the last sign of life that counts, for
// the timeout. One counts if it was answered, and if a majority has shown that the answer came from the leader; see
// pacemaker.beat. The servers count from the arrival of the same message, which is later, so they never free a lock
// that is still trusted here. The exceptions, an operator's revocation and the leaders of etcd #15247, are in doc.go.
// This needs no common clock, only clocks that run at the same speed; the drift allowance is the portable layer's.

package etcdlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
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
	// Releases and withdrawals that the servers refuse; see retire.
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

// Signs of life of a session, in a goroutine of its own. notices.go looks at the holds after each.
//
// The goroutine does nothing else: a look at the holds that takes long must not delay the next sign of life, which is
// why it only passes on to notices.go what it has read.
//
// An answer to a sign of life proves little by itself: a leader gives it from its own memory. One that stood still, or
// hears nothing of the others, goes on answering until it notices that it leads no more, while its successor counts the
// lease by what it knows. So each sign of life goes with a read that needs a majority; see beat.

const (
	// heartbeats is how many signs of life are sent within a timeout. tries divides the timeout: the first limit of
	// each. A sign of life without an answer by then is given up, and the next goes to another member if there is one;
	// see pacemaker.limit.
	heartbeats = 3
	tries      = 6
)

// pacemaker sends the signs of life of one session. Each has a request of its own, unlike the client library's
// KeepAlive, which does not tell when the request was sent that was answered: only from then on may a session be
// trusted. Only the heartbeat's goroutine uses it.
type pacemaker struct {
	s      *session
	stream pb.Lease_LeaseKeepAliveClient // nil if there is none
	cut    context.CancelFunc            // ends the stream
	// limit is how long an answer is waited for. After one that did not come it doubles: either the member hangs, and
	// another answers in time, or all are far away and none would ever be in time. After one that came it is twice what
	// that took.
	limit time.Duration
}

// heartbeat sends the signs of life until the session is lost or the driver is closed. It is also what notices that a
// session is over when no server answers: it wakes up at the session's end at the latest.
func (s *session) heartbeat(ctx context.Context) {
	p := &pacemaker{s: s, limit: s.timeout / tries}
	defer p.drop()
	// Signs of life are spaced from when the last one was SENT, so that slow answers do not stretch the distance.
	next := s.Confirmed().Add(s.timeout / heartbeats)
	for p.pause(ctx, time.Until(next)) {
		sent := time.Now()
		if !sent.Before(s.end()) { // this process stood still, or no member has answered
			s.lose(errUnanswered)
			return
		}
		if cause := s.spent(); cause != nil {
			s.lose(cause)
			return
		}
		// No answer is waited for beyond the session's end, which has to be told in time.
		found, err := p.beat(ctx, min(p.limit, time.Until(s.end())))
		pause := p.learn(err, time.Since(sent))
		switch {
		case err == nil:
			s.confirm(sent) // counted from before it was sent
			s.check(found)
			next = sent.Add(s.timeout / heartbeats)
		case isGone(err):
			s.lose(rpctypes.ErrLeaseNotFound)
			return
		default:
			next = time.Now().Add(pause)
			if end := s.end(); next.After(end) { // to notice the end of the session in time
				next = end
			}
		}
	}
}

// learn records how long an answer took, or that it did not come. It returns how long to pause after a failure. A
// server that refuses at once is not asked again without a pause. One that did not answer has had its time: with a
// pause as well, hardly any of the timeout would be left for a third try.
func (p *pacemaker) learn(err error, took time.Duration) (pause time.Duration) {
	switch {
	case err == nil:
		p.limit = 2 * took
	case took >= p.limit:
		p.limit *= 2
	default:
		pause = min(p.s.timeout/(4*tries), longestPause/4)
	}
	// Half of the timeout leaves time for one more try to another member.
	p.limit = min(max(p.limit, p.s.timeout/tries), p.s.timeout/2)
	return pause
}

// pause waits for d, and reports false if ctx or the session ends before.
func (p *pacemaker) pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-p.s.done:
	case <-ctx.Done():
	}
	return false
}

// errDeposed says that a sign of life was answered by a leader that may have a successor.
var errDeposed = errors.New("etcd: the sign of life may have been answered by a leader that leads no more")

// beat sends a sign of life, reads the session's own keys at the same time, and returns these. The two answers together
// prove that no leader counts the lease from before the two were sent.
//
// Why: servers fill the header of the answer before they renew the lease, with the term of the latest entry that they
// have applied. By then they follow the leader of that term or a later one, so this one renews the lease. The read
// needs the word of a majority that is given after it was sent, and its header is filled at its end, with the term of
// the leader that got that word, or a later one. All leaders of later terms than that one's were elected after the
// sending, and a new leader counts each lease from its election. So the answer is good if its term is not the smaller.
func (p *pacemaker) beat(ctx context.Context, limit time.Duration) (*clientv3.GetResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	// At the same time: one after the other, they would take two round trips, and be late where servers are far away.
	var found *clientv3.GetResponse
	var failed error
	read := make(chan struct{})
	go func() { // ends with ctx
		defer close(read)
		found, failed = p.s.readPresence(ctx)
	}()
	term, err := p.ping(ctx)
	if err != nil {
		cancel()
	}
	<-read
	switch err := cmp.Or(err, failed); {
	case err != nil:
		return nil, err
	case found.Header.RaftTerm > term:
		p.drop() // another member may know better who leads
		return nil, errDeposed
	}
	return found, nil
}

// ping asks once for the lease to go on, and returns the term in which it was answered. The stream is kept: with users
// and passwords, each new one costs the server the check of a password. A stream that has failed is dropped, so that a
// late answer is never taken for that of a later request.
func (p *pacemaker) ping(ctx context.Context) (term uint64, err error) {
	var life context.Context
	if p.stream == nil {
		life, p.cut = context.WithCancel(p.s.d.life)
	}
	// A stream has no limit for a single answer, so the whole stream is ended when one is late.
	inTime := context.AfterFunc(ctx, p.cut)
	defer func() {
		if !inTime() || err != nil {
			p.drop()
		}
	}()
	if p.stream == nil {
		if p.stream, err = p.s.d.leases.LeaseKeepAlive(life); err != nil {
			return 0, err
		}
	}
	if err := p.stream.Send(&pb.LeaseKeepAliveRequest{ID: int64(p.s.id)}); err != nil {
		return 0, err
	}
	answer, err := p.stream.Recv()
	if err != nil {
		return 0, err
	}
	if answer.TTL <= 0 { // the servers' way to say that they do not know the lease
		return 0, rpctypes.ErrLeaseNotFound
	}
	return answer.Header.GetRaftTerm(), nil
}

// drop ends the stream.
func (p *pacemaker) drop() {
	if p.cut != nil {
		p.cut()
	}
	p.stream, p.cut = nil, nil
}

// check makes the goroutine of notices.go look at the holds, and passes on what was read for it. It does not block.
func (s *session) check(found *clientv3.GetResponse) {
	select {
	case s.look <- found:
	default: // they are about to be looked at; what is new is read with the next sign of life
	}
}

// Retiring a session whose releases are refused.
//
// When that is, enginekit.Refusals says. Until then the session takes no new locks; new requests get another one. Holds
// that it still has are trusted as before. Meanwhile the portable layer repeats the releases, and a session that was
// heard out goes on.

var (
	// errUnreleased is the cause of a session that was given up because its releases are refused.
	errUnreleased = errors.New("etcd: the servers refuse to end what was released, so the session ends with it")

	// errReplaced is the cause of one that has nothing left, and that new requests do not use.
	errReplaced = errors.New("etcd: the session was replaced and has nothing left")
)

// answered records what became of a release or a withdrawal of e, which has been under way. It returns the error that
// the caller gets: once the session is over, what the servers refuse to end ends by itself.
func (d *Driver) answered(e *entry, undo bool, err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	s, id := e.session, holdID{e.r.Key, e.r.ID}
	switch {
	case s == nil:
		return err
	case err == nil, errors.Is(err, driver.ErrLost), errors.Is(err, errUnsure): // nothing is left
		if s.refused.Settled(id) && d.current == nil && d.making == nil && s.lost == nil {
			d.current = s
		}
		return err
	case !isRefusal(err): // no answer says nothing about what was refused before
		return err
	case s.lost == nil:
		s.refused.Refused(id, err)
		if d.current == s {
			d.current = nil
		}
		return err
	case undo:
		return nil
	}
	return lost(e.r.Key, e.token(), driver.LostSession, s.lost)
}

// isRetired reports whether new requests do not use the session. The caller holds Driver.mu.
func (s *session) isRetired() bool {
	return s.refused.Err() != nil || s.d.current != nil && s.d.current != s
}

// spent returns why the session must give no further sign of life, or nil.
func (s *session) spent() error {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	switch {
	case s.refused.Spent(s.timeout, len(s.holds) > 0):
		return errUnreleased
	case s.refused.Err() == nil && s.isRetired() && !s.isUsed():
		return errReplaced
	}
	return nil
}

// isUsed reports whether any request has a key in the session, or may have. The caller holds Driver.mu.
func (s *session) isUsed() bool {
	for _, e := range s.d.entries {
		if e.session == s && e.ended == "" {
			return true
		}
	}
	return len(s.holds) > 0
}
