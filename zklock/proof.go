// What proves that the session lives: which answers confirm it, and from when it is trusted. The keeper asks for a proof
// in time, call.go notes each answer.
//
// The leader alone ends sessions, and a majority alone says who leads. A leader that was cut off goes on for syncLimit
// ticks and more: until then it greets clients that come back and answers sync, both from its own memory, while the
// others have elected another leader, which counts all sessions anew. So only a transaction proves anything. It is
// carried out after a majority has agreed, and nobody of a majority that has agreed has another leader yet.
//
// Nor does the leader of a majority know all: a follower tells it only now and then which of its clients it has heard
// of. Therefore two requests make a proof, the first of which the leader must have heard of when it takes the second.

package zklock

import (
	"context"
	"time"

	"github.com/go-zookeeper/zk"
)

// confirm records that the servers may end the session a timeout after at, and not before. Proofs may come in any
// order; the latest instant counts.
func (s *session) confirm(at time.Time) {
	since := int64(at.Sub(s.d.born))
	for {
		known := s.confirmed.Load()
		if since <= known || s.confirmed.CompareAndSwap(known, since) {
			return
		}
	}
}

// Confirmed returns the instant from which the session may be trusted for its timeout: when the last request was sent of
// which it is proved that the leader knows.
func (s *session) Confirmed() time.Time { return s.d.born.Add(time.Duration(s.confirmed.Load())) }

// reportLag is how much later than a follower the leader of an ensemble may learn that a session lives: followers
// report it when the leader asks, each half tick. Sessions last two ticks at least, so that is at most a quarter of the
// timeout; the longest tick in use is 3 s. The report and the transactions of a follower's clients go to the leader one
// after the other. So a transaction that was sent so much later than another request proves that the leader knows of
// that one.
func reportLag(timeout time.Duration) time.Duration {
	return min(timeout/4, 1500*time.Millisecond)
}

// heard records that a request over l that was sent at that instant has been answered, and whether a majority has
// agreed to it. known is an earlier request of which the server of the connection has heard, but perhaps not the
// leader. So busy clients have proofs without asking for them.
func (l *link) heard(sent time.Time, agreed bool) {
	s := l.s
	s.d.mu.Lock()
	known := l.known
	proved := agreed && !known.IsZero() && sent.Sub(known) >= reportLag(s.timeout)
	if known.IsZero() || proved {
		l.known = sent
	}
	s.d.mu.Unlock()
	if proved {
		s.confirm(known)
	}
}

// agree makes a transaction that changes nothing. What is read over l from then on is at least as new as this moment,
// for the whole ensemble. A sync would not do: a leader that was cut off answers it from its own memory.
func (l *link) agree(ctx context.Context) error {
	failed, err := l.transact(ctx, &zk.CheckVersionRequest{Path: l.node, Version: l.epoch})
	if failed == 0 { // the session's node is not what l knows
		l.stale()
		return errStale
	}
	return err
}

// prove confirms the session, from about now. It sends a request that the server of the connection answers by itself,
// lets pass what the leader may need to hear of that, and has a majority agree. The second request does not wait for the
// answer to the first: with a far server that would take most of the timeout.
func (l *link) prove(ctx context.Context) error {
	s := l.s
	began, known := make(chan time.Time, 1), make(chan error, 1) // buffered, so that the goroutine ends in any case
	s.unanswered.Add(1)
	if !s.d.spawn(func() { // ends with the answer or the connection
		defer s.unanswered.Add(-1)
		began <- time.Now()
		_, err := now(l, false, func(c *zk.Conn) (bool, error) {
			there, _, err := c.Exists(l.node)
			return there, err
		})
		known <- err
	}) {
		s.unanswered.Add(-1)
		return errOver
	}
	at := <-began
	timer := time.NewTimer(reportLag(s.timeout))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	case <-s.over:
		return errOver
	}
	s.unanswered.Add(1)
	err := l.agree(ctx)
	s.unanswered.Add(-1)
	if err != nil {
		return err
	}
	// It is answered already, or the connection has broken since.
	if err := <-known; err != nil {
		return err
	}
	s.confirm(at)
	return nil
}
