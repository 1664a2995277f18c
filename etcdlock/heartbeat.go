// Signs of life of a session, in a goroutine of its own. session.go starts it; notices.go looks at the holds after
// each.
//
// The goroutine does nothing else: a look at the holds that takes long must not delay the next sign of life, which is
// why it only passes on to notices.go what it has read.
//
// An answer to a sign of life proves little by itself: a leader gives it from its own memory. One that stood still, or
// hears nothing of the others, goes on answering until it notices that it leads no more, while its successor counts the
// lease by what it knows. So each sign of life goes with a read that needs a majority; see beat.

package etcdlock

import (
	"cmp"
	"context"
	"errors"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

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
