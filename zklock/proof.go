// What proves that the session lives: which answers confirm it, and from when it is trusted. The keeper asks for a
// proof in time, call.go notes each answer.
//
// The leader alone ends sessions, and a majority alone says who leads. A leader that was cut off goes on for syncLimit
// ticks and more: until then it greets clients that come back and answers sync, both from its own memory, while the
// others have elected another leader, which counts all sessions anew. So only a transaction proves anything. It is
// carried out after a majority has agreed, and nobody of a majority that has agreed has another leader yet.
//
// Nor does the leader of a majority know all: a follower tells it only now and then which of its clients it has heard
// of. Therefore two requests make a proof, the first of which the leader must have heard of when it takes the second:
// a sign, and a transaction. They prove something only if they reached the follower far enough apart, and that they
// were sent so is not enough. Over a connection that stood still both arrive together. There are two ways to know it:
//
//   - The sign was answered so long before the transaction was sent. Then it had arrived by then, whatever the network
//     does. A proof takes two round trips and the pause, so near servers are asked in this way.
//   - Signs were sent between the two as well, and the answers came one after the other, as far apart as the signs were
//     sent. What arrives together is answered together. So the way to the server is long, but does not stand still, and
//     the two arrived as far apart as they were sent, but for what the first took longer than others. This supposes
//     that no network keeps requests back, and then spaces the answers out as the requests were sent. Such a proof
//     takes one round trip and the pause, so holds last far from the servers. It is made only where the first way would
//     be slow.

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
// timeout; the longest tick in use is 3 s. A little is added for a leader that asks late. The report and the
// transactions of a follower's clients go to the leader one after the other. So a transaction that reached the follower
// so much later than another request proves that the leader knows of that one.
func reportLag(timeout time.Duration) time.Duration {
	return min(timeout/4+timeout/100, 1600*time.Millisecond)
}

// unevenness is what a sign may take longer than others without making another transaction necessary.
func unevenness(timeout time.Duration) time.Duration { return timeout / 50 }

// heard records when a request over l was sent and answered, and whether a majority has agreed to it. known is an
// earlier request of which the server of the connection has heard, but perhaps not the leader. So busy clients have
// proofs without asking for them.
func (l *link) heard(sent, answered time.Time, agreed bool) {
	s := l.s
	s.d.mu.Lock()
	known := l.known
	proved := agreed && !known.sent.IsZero() && sent.Sub(known.answered) >= reportLag(s.timeout)
	if known.sent.IsZero() || proved {
		l.known = sign{sent: sent, answered: answered}
	}
	s.d.mu.Unlock()
	if proved {
		s.confirm(known.sent)
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

// sign is a request by which the server of a connection hears of the client.
type sign struct {
	sent     time.Time
	answered time.Time     // zero while it is not
	err      error         // of the answer
	done     chan struct{} // closed when answered and err are there
}

// prove confirms the session, from about now. It gives a sign, lets pass what the leader may need to hear of that, and
// has a majority agree. If the answer to the sign is not there soon, the transaction does not wait for it: with a far
// server that would take most of the timeout. If the two may have arrived together, another transaction follows.
func (l *link) prove(ctx context.Context) error {
	g, err := l.sign()
	if err != nil {
		return err
	}
	s, lag := l.s, reportLag(l.s.timeout)
	near, err := s.rest(ctx, g.done, s.pause())
	if err != nil {
		return err
	}
	if !near {
		if _, err := s.rest(ctx, nil, time.Until(g.sent.Add(lag+unevenness(s.timeout)))); err != nil {
			return err
		}
		if proved, err := l.settle(ctx, g); proved || err != nil {
			return err
		}
		// It is answered already, or the connection has broken since.
		if _, err := s.rest(ctx, g.done, s.timeout); err != nil {
			return err
		}
	}
	s.d.mu.Lock()
	answered, err := g.answered, g.err
	s.d.mu.Unlock()
	if err != nil {
		return err
	}
	if _, err := s.rest(ctx, nil, time.Until(answered.Add(lag))); err != nil {
		return err
	}
	_, err = l.settle(ctx, g)
	return err
}

// sign sends a request that the server of the connection answers by itself.
func (l *link) sign() (*sign, error) {
	s, g := l.s, &sign{done: make(chan struct{})}
	s.d.mu.Lock()
	g.sent = time.Now() // under the mutex, so that signs are in the order of their instants
	for len(l.signs) > 0 && g.sent.Sub(l.signs[0].sent) > s.timeout {
		l.signs = l.signs[1:] // it would prove nothing that anybody needs
	}
	l.signs = append(l.signs, g)
	s.d.mu.Unlock()
	s.unanswered.Add(1)
	if !s.d.spawn(func() { // ends with the answer or the connection
		defer s.unanswered.Add(-1)
		defer close(g.done)
		_, err := now(l, false, func(c *zk.Conn) (bool, error) {
			there, _, err := c.Exists(l.node)
			return there, err
		})
		s.d.mu.Lock()
		if g.err = err; err == nil {
			g.answered = time.Now()
		}
		s.d.mu.Unlock()
	}) {
		s.unanswered.Add(-1)
		return nil, errOver
	}
	return g, nil
}

// settle makes a transaction, confirms what it proves, and reports whether that was given no earlier than g.
func (l *link) settle(ctx context.Context, g *sign) (proved bool, err error) {
	s := l.s
	if s.confirmedSince(g.sent) {
		return true, nil // another transaction has proved it meanwhile
	}
	sent := time.Now()
	s.unanswered.Add(1)
	err = l.agree(ctx)
	s.unanswered.Add(-1)
	if err != nil {
		return false, err
	}
	s.d.mu.Lock()
	at := l.proven(sign{sent: sent, answered: time.Now()})
	s.d.mu.Unlock()
	if !at.IsZero() {
		s.confirm(at)
	}
	return s.confirmedSince(g.sent), nil
}

// confirmedSince reports whether it is proved that the leader knows of a request that was sent at that instant or
// later.
func (s *session) confirmedSince(sent time.Time) bool {
	return s.confirmed.Load() >= int64(sent.Sub(s.d.born))
}

// proven returns when the latest sign was sent that reached the server of the connection long enough before
// transaction, and forgets what is older. It returns zero if there is none. The caller holds Driver.mu. The two ways to
// know it are told at the top of this file.
func (l *link) proven(transaction sign) time.Time {
	lag := reportLag(l.s.timeout)
	apart, shortest := spacing{most: lag * 3 / 4, since: transaction.sent}, transaction.trip()
	for i := len(l.signs) - 1; i >= 0; i-- {
		g := l.signs[i]
		if !g.sent.Before(transaction.sent) {
			continue
		}
		if g.answered.IsZero() { // only its own proof may wait for that
			apart.broken = true
			continue
		}
		shortest = min(shortest, g.trip())
		apart.add(g)
		// Whatever is sent takes some time to the server, and an answer some time from it: the shortest trip together.
		// So what g took longer than that is the most by which it came nearer to the transaction.
		if transaction.sent.Sub(g.answered) >= lag ||
			apart.holds() && transaction.sent.Sub(g.sent)-(g.trip()-shortest) >= lag {
			l.signs = l.signs[i+1:]
			return g.sent
		}
	}
	return time.Time{}
}

// spacing is whether signs were answered as they were sent, one after the other. Of signs that had arrived together the
// answers would be as close. It needs two pairs that are not: a network that kept requests back, and then the answers
// after the first, makes one. A pair more may be close, because this process may have stood still. No two may be so far
// apart that what was kept back in between could have arrived too late.
type spacing struct {
	most   time.Duration
	since  time.Time // when the latest that was added was sent, the transaction at first
	later  *sign
	pairs  int
	close  int // of them, those whose answers came together
	broken bool
}

// add adds the sign that was sent before the one that was added last.
func (a *spacing) add(g *sign) {
	a.broken = a.broken || a.since.Sub(g.sent) > a.most
	if a.later != nil {
		a.pairs++
		if 4*a.later.answered.Sub(g.answered) < a.later.sent.Sub(g.sent) {
			a.close++
		}
	}
	a.since, a.later = g.sent, g
}

func (a *spacing) holds() bool { return !a.broken && a.close <= 1 && a.pairs-a.close >= 2 }

// trip is how long it took until the answer was there.
func (g *sign) trip() time.Duration { return g.answered.Sub(g.sent) }

// rest blocks until done is closed or a time has passed, and reports whether it was closed.
func (s *session) rest(ctx context.Context, done <-chan struct{}, most time.Duration) (closed bool, err error) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-done:
		return true, nil
	case <-timer.C:
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	case <-s.over:
		return false, errOver
	}
}
