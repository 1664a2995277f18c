// What proves that the session lives: which answers confirm it, and from when it is trusted. The keeper asks for a
// proof in time, call.go notes each answer.
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

// Confirmed returns the instant from which the session may be trusted for its timeout: when the last request was sent
// of which it is proved that the leader knows. It goes back if a doubt about the timeout begins, until that is over.
func (s *session) Confirmed() time.Time {
	at := time.Duration(s.confirmed.Load())
	if doubted := s.doubted.Load(); doubted != 0 {
		at = min(at, time.Duration(doubted)+surely(s.timeout)-s.timeout)
	}
	return s.d.born.Add(at)
}

// doubt records that a connection is about to be asked for. Each server bounds a session's timeout anew when the
// session comes to it, and the answer that tells so may be lost. So from now on the session may be shorter than is
// known, until a connection is ready: the leader has then been told the timeout anew. The line calls it.
//
// The end of a doubt that lasts is told by a timer of its own. The keeper may be waiting for an answer of the very
// server that makes the doubt last, one that has greeted from memory.
func (s *session) doubt() {
	if !s.doubted.CompareAndSwap(0, int64(time.Since(s.d.born))) { // the first attempt counts
		return
	}
	left, _ := s.doubtLeft()
	time.AfterFunc(left, func() { // it may find no doubt any more, or a later one, which has a timer too
		if left, doubted := s.doubtLeft(); doubted && left <= 0 {
			s.end(errUnclear)
		}
	})
}

// doubtLeft returns how long a doubt about the timeout may still last before the holds of the session must be told that
// they are lost, and false if there is no doubt. It is a little less than what Confirmed tells, as holds are told
// before the end of the timeout elsewhere too.
func (s *session) doubtLeft() (left time.Duration, doubted bool) {
	since := s.doubted.Load()
	if since == 0 {
		return 0, false
	}
	return time.Until(s.d.born.Add(time.Duration(since) + surely(s.timeout) - s.timeout/100)), true
}

// surely is the timeout that a session has in any case, whatever limits a server has that it comes back to: two ticks
// of ZooKeeper's default. The limit itself, maxSessionTimeout, is twenty ticks unless it is set, so it is lower only on
// servers that somebody has configured so.
func surely(timeout time.Duration) time.Duration { return min(timeout, 4*time.Second) }

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
// lets pass what the leader may need to hear of that, and has a majority agree. The second request does not wait for
// the answer to the first: with a far server that would take most of the timeout.
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
