// Signs of life of a session, in a goroutine of its own. session.go starts it; notices.go looks at the holds after
// each.
//
// The goroutine does nothing else: a look at the holds that takes long must not delay the next sign of life, which is
// why it only triggers the one in notices.go.

package etcdlock

import (
	"context"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
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
		// No answer is waited for beyond the session's end, which has to be told in time.
		err := p.ping(ctx, min(p.limit, time.Until(s.end())))
		pause := p.learn(err, time.Since(sent))
		switch {
		case err == nil:
			s.confirm(sent) // counted from before it was sent
			s.check()
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

// ping asks once for the lease to go on. The stream is kept: with users and passwords, each new one costs the server
// the check of a password. A stream that has failed is dropped, so that a late answer is never taken for that of a
// later request.
func (p *pacemaker) ping(ctx context.Context, limit time.Duration) (err error) {
	if p.stream == nil {
		ctx, p.cut = context.WithCancel(ctx)
	}
	// A stream has no limit for a single answer, so the whole stream is ended when one is late.
	late := time.AfterFunc(limit, p.cut)
	defer func() {
		if !late.Stop() || err != nil {
			p.drop()
		}
	}()
	if p.stream == nil {
		if p.stream, err = p.s.d.leases.LeaseKeepAlive(ctx); err != nil {
			return err
		}
	}
	if err := p.stream.Send(&pb.LeaseKeepAliveRequest{ID: int64(p.s.id)}); err != nil {
		return err
	}
	answer, err := p.stream.Recv()
	if err != nil {
		return err
	}
	if answer.TTL <= 0 { // the servers' way to say that they do not know the lease
		return rpctypes.ErrLeaseNotFound
	}
	return nil
}

// drop ends the stream.
func (p *pacemaker) drop() {
	if p.cut != nil {
		p.cut()
	}
	p.stream, p.cut = nil, nil
}

// check makes the goroutine of notices.go look at the holds. It does not block.
func (s *session) check() {
	select {
	case s.look <- struct{}{}:
	default: // they are about to be
	}
}
