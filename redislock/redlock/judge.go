// How a round ends: the rules about majorities, waits and split votes. round.go asks judge after each change; votes.go
// has what votes amount to.

package redlock

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// refusalGrace is how long a refused try waits for further nodes that may name the holder: its token is certain only
// when all have.
const refusalGrace = 100 * time.Millisecond

// errMajority says that there are enough votes. It never leaves the package.
var errMajority = errors.New("a majority has voted")

// tally is a round's votes, counted.
type tally struct {
	granted, queued, refused, failed, ended, asked int

	pending  int   // how many of the asked and queued may answer soon
	expired  bool  // a vote ran out before it was used
	silent   bool  // the time for answers is over: those without one count as failed
	definite error // a node will never grant this request
	gone     error // why, from a node that knows that the request is over; nil if none said it
}

// tally counts the votes. The caller holds claim.mu.
func (rd *round) tally(now time.Time) (t tally) {
	t.silent = now.Sub(rd.began) >= rd.c.d.opts.NodeTimeout
	for i := range rd.votes {
		v := &rd.votes[i]
		// A node that has had its time counts as failed, even if its answer may still come. The votes are judged as if
		// it were away.
		if rd.isOverdue(i, t.silent) {
			t.failed++
			continue
		}
		t.add(v, now)
		if rd.answersSoon(i) {
			t.pending++
		}
	}
	return t
}

// add counts a vote that is not overdue. A yielded one counts for nothing.
func (t *tally) add(v *vote, now time.Time) {
	switch v.state {
	case asked:
		t.asked++
	case queued:
		t.queued++
	case granted:
		// The vote of a node whose lease has run out is no vote any more, whether the node knows that or not.
		if v.ends().After(now) {
			t.granted++
		} else {
			t.expired = true
		}
	case refused:
		t.refused++
	case absent:
		t.failed++
	case failed:
		t.failed++
		if t.definite == nil && driver.IsDefinite(v.err) {
			t.definite = v.err
		}
	case ended:
		t.ended++
		if v.err != nil {
			t.gone = v.err
		}
	case yielded:
	}
}

// isOverdue reports whether a node should have answered by now. silent says that the time for answers is over.
func (rd *round) isOverdue(i int, silent bool) bool {
	switch rd.votes[i].state {
	case asked:
		return silent
	case queued:
		return silent && rd.isSilent(i)
	default:
		return false
	}
}

// answersSoon reports whether a node is worth a moment's wait. A node that was late before is not waited for again.
func (rd *round) answersSoon(i int) bool {
	switch rd.votes[i].state {
	case asked:
		return !rd.c.d.nodes[i].late.Load()
	// Until the round waits, the node has only just said that it will take its time.
	case queued:
		return rd.waits && !rd.c.d.nodes[i].late.Load()
	default:
		return false
	}
}

// isSilent reports whether a node in whose queue we are has missed a heartbeat.
func (rd *round) isSilent(i int) bool {
	n := rd.c.d.nodes[i]
	return n.driver() == nil || n.guard.silence() > heartbeatEvery+rd.c.d.opts.NodeTimeout
}

// judge says how the round ends: with errMajority or another error. It returns nil if the round goes on until a vote
// changes, or until the returned time is over. The order of the cases matters: what ends the request for good comes
// before a majority. The caller holds claim.mu.
func (rd *round) judge(now time.Time) (time.Duration, error) {
	c := rd.c
	t := rd.tally(now)
	spare := len(rd.votes) - c.d.quorum // how many nodes a majority can do without
	if !rd.timed && t.granted+t.queued+t.refused >= c.d.quorum {
		rd.timed = true
		c.d.measured(now.Sub(rd.began))
	}
	switch {
	case c.ending != nil:
		return 0, c.gone()
	case t.definite != nil:
		return 0, t.definite
	case t.granted >= c.d.quorum:
		// With all votes the second round trip is spared, so the rest is worth the grace.
		if wait := rd.patient(&rd.enough, now, t.pending, c.d.grace()); wait > 0 {
			return wait, nil
		}
		return 0, errMajority
	case t.ended > spare:
		return 0, c.overruled(&t)
	// A vote ran out before it was used.
	case t.expired:
		return 0, errSlow
	case t.failed+t.ended > spare && !c.r.Try:
		return 0, rd.unreachable("acquire")
	case t.refused+t.failed+t.ended > spare && c.r.Try:
		return rd.refuse(now, t)
	case t.granted+t.queued+t.asked < c.d.quorum:
		return 0, errSplit
	}
	rd.announce(t)
	return rd.keep(now, t)
}

// refuse ends a try that cannot get a majority any more, after a moment for nodes that may still name the holder.
func (rd *round) refuse(now time.Time, t tally) (time.Duration, error) {
	if wait := rd.patient(&rd.settled, now, t.pending, refusalGrace); wait > 0 {
		return wait, nil
	}
	// Too few have said anything: a missing majority must not look like a held lock.
	if t.granted+t.refused+t.ended < rd.c.d.quorum {
		return rd.whenSilent(now, t)
	}
	// Several tries have taken votes from each other, and nobody has the lock.
	if _, named := rd.inTheWay(); named+t.failed < rd.c.d.quorum && rd.c.rounds < mostTries {
		return 0, errSplit // several who try have taken votes from each other, and nobody has the lock
	}
	return 0, rd.refusal()
}

// whenSilent waits for nodes that may still say that another request is in the way. Until then it is not known whether
// a majority answers at all.
func (rd *round) whenSilent(now time.Time, t tally) (time.Duration, error) {
	if t.asked > 0 {
		return rd.began.Add(rd.c.d.opts.NodeTimeout).Sub(now), nil
	}
	return 0, rd.unreachable("acquire")
}

// patient gives nodes that may answer soon a moment, from the instant when the answers of the others were enough. It
// returns what is left of that moment. A node that lets it pass is marked late, and not waited for again until it
// answers.
func (rd *round) patient(since *time.Time, now time.Time, pending int, grace time.Duration) time.Duration {
	if pending == 0 {
		return 0
	}
	if since.IsZero() {
		*since = now
	}
	if wait := since.Add(grace).Sub(now); wait > 0 {
		return wait
	}
	for i := range rd.votes {
		if rd.votes[i].state == asked {
			rd.c.d.nodes[i].late.Store(true)
		}
	}
	return 0
}

// announce tells the caller who is in the way, when a majority has answered and the lock cannot be had at once, and
// again when that changes.
func (rd *round) announce(t tally) {
	c := rd.c
	answered := t.granted + t.queued + t.ended
	// Nothing is told while the nodes that have not answered could still make a majority of grants.
	if c.r.Try || answered < c.d.quorum || t.queued+t.failed+t.ended <= len(rd.votes)-c.d.quorum {
		return
	}
	held, _ := rd.inTheWay()
	// The same holder is told once.
	if rd.waits && held == rd.told {
		return
	}
	rd.waits, rd.told = true, held
	if rd.waiting != nil {
		rd.waiting(&held)
	}
}

// keep says how long the round goes on as it is. Votes that are no majority are kept only for a while: several rounds
// may have some, and none would ever get the rest. The fewer votes, the sooner they are given back; between equals
// chance decides (doc.go, Waiting).
func (rd *round) keep(now time.Time, t tally) (time.Duration, error) {
	wait := heartbeatEvery
	if t.asked > 0 && !t.silent {
		wait = min(wait, rd.began.Add(rd.c.d.opts.NodeTimeout).Sub(now))
	}
	// The others have not answered yet, so this may become a majority by itself.
	if t.granted == 0 || t.granted+t.queued+t.refused+t.ended < rd.c.d.quorum {
		rd.voted = 0
		return wait, nil
	}
	// The time starts anew with each change of the number of votes.
	if t.granted != rd.voted {
		rd.voted = t.granted
		rd.yieldAt = now.Add(time.Duration((float64(t.granted) + rand.Float64()) * float64(rd.patience)))
	}
	if left := rd.yieldAt.Sub(now); left > 0 {
		return min(wait, left), nil
	}
	// No majority names one holder, so nobody has the lock: the votes are split. Otherwise there is a holder to wait
	// for.
	if _, named := rd.inTheWay(); named < rd.c.d.quorum {
		return 0, errSplit
	}
	rd.yield()
	return wait, nil
}

// yield gives back the votes of a round while another request has a majority. That request stands in the queues for
// them, and needs them if one of its nodes fails. Our places in the other nodes' queues are kept. The caller holds
// claim.mu.
func (rd *round) yield() {
	for i := range rd.votes {
		if rd.votes[i].state == granted {
			rd.votes[i].state = yielded
			rd.votes[i].cancel()
			rd.undo(i)
		}
	}
}
