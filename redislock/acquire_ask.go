// The round trips of an attempt: the first question, the heartbeats, and what an answer or an error says about copies
// of the request. acquire.go decides when to ask. request.go has the arguments, conn.Call sends the script, and
// reply.go reads the answer.

package redislock

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// retry is the mean pause between two attempts of a waiting request to reach a server that does not answer. It is drawn
// at random, so that the waiters of a failed server do not come back together.
const retry = 100 * time.Millisecond

// errOwed says that a heartbeat found nothing of the hold that it was to give up again, nor of its request.
var errOwed = errors.New("the hold has ended, and the request has lost its place")

// askFirst sends the request for the first time, with the way in which it is willing to wait. An unreachable server is
// reported at once: there is no place in a queue yet that a longer attempt would keep.
//
// In a Cluster a push goes to a channel of the slot, to which this process must have subscribed before the server may
// queue the request. Without that a grant could be pushed to nobody. If the process does not listen yet, it first asks
// with way l, which grants or says that it would wait but queues nothing. Only then it pays the round trip of a
// subscription.
func (a *attempt) askFirst(ctx context.Context, give *driver.Release) error {
	way := byte('p')
	switch {
	// The way goes with the request and is stored by the server: see setTail.
	case a.spokenFor():
		way = 'P'
	case a.r.Try:
		way = 't'
	case a.d.conn.Sharded() && give == nil && a.cond == nil && !a.d.listens(a.slot):
		way = 'l'
	case a.d.conn.Sharded():
		way = 's'
		if err := a.listen(ctx); err != nil {
			return err
		}
	}
	a.setTail(way)
	// With way l, an answer that the request would wait means that it is not queued yet.
	if err := a.askTwice(ctx, give); err != nil || a.answer.verdict != wouldWait {
		return err
	}
	if err := a.listen(ctx); err != nil {
		return err
	}
	a.setTail('s')
	return a.askTwice(ctx, nil)
}

// askTwice asks, and once more if the connection broke before the answer came. The request has an ID, so the copy takes
// nothing twice, and is answered like the original. Without this a server that closes idle connections, or restarts,
// would fail the next request of everybody. A request that was released meanwhile is not asked again.
func (a *attempt) askTwice(ctx context.Context, give *driver.Release) error {
	err := a.ask(ctx, give)
	if a.d.mayRepeat(ctx, err) && !a.d.wasWithdrawn(a.r.ID, a.e) {
		return ofBoth(err, a.ask(ctx, give))
	}
	return err
}

// heartbeat asks again until the server answers, because the place in the queue is worth keeping through a failover. A
// refusal that the server would repeat is an answer too. In a Cluster it subscribes again first: the slot may have
// moved to another node.
func (a *attempt) heartbeat(ctx context.Context) error {
	if spoken := a.args[3][0] == 'P'; spoken != a.spokenFor() { // the process has fallen silent, or speaks again
		a.setTail(map[bool]byte{true: 'p', false: 'P'}[spoken])
	}
	for {
		err := a.listen(ctx)
		if err == nil {
			err = a.ask(ctx, a.owed)
		}
		if err == nil || ctx.Err() != nil || errors.Is(err, driver.ErrClosed) || isFinal(err) {
			return err
		}
		// Half of the pause is random, so that the waiters of a server that comes back do not ask all at once.
		select {
		case <-time.After(retry/2 + rand.N(retry)):
		case <-ctx.Done():
			return ctx.Err()
		case <-a.d.closing:
			return driver.ErrClosed
		}
	}
}

// ask sends the request once, with the release of give in the same run if that is set. It blocks until the call
// returns.
func (a *attempt) ask(ctx context.Context, give *driver.Release) error {
	a.write(give)
	sent := time.Now() // before the request, so not later than the server's own instant
	answer := a.d.conn.Call(ctx, &a.call)
	// A refused call has not run; after any other error it may have.
	a.ran = a.ran || !isRefusal(answer.Err)
	if answer.Err != nil {
		return a.failed(answer.Err)
	}
	return a.heard(give, answer, sent)
}

// write fills in the call: one script, whose first keys and arguments are those of a plain request. What comes with it
// (a hold to give, a condition, a hold beside) appends its own, which is the order that the scripts expect.
func (a *attempt) write(give *driver.Release) {
	call := &a.call
	*call = Call{Script: acquireScript, Slot: a.slot, Keys: a.keys[:], Args: a.args[:]}
	if give == nil && a.cond == nil && a.args[4] == plainRequest {
		call.Args = a.args[:4] // which is how most are, and costs the server less
	}
	telling := watchedAcquireScript
	if give != nil {
		call.Script, telling = requeueScript, watchedRequeueScript
		call.Keys = append(slices.Clone(call.Keys), a.d.names.tomb(a.slot, give.ID))
		call.Args = append(slices.Clone(call.Args), give.ID, a.d.releaseKind(give), inMillis(give.Horizon))
	}
	if a.adopts != "" {
		a.adopting(call)
		telling = watchedAdoptScript
	}
	if a.cond != nil {
		a.cond.fill(a, call)
	}
	if a.beside != "" {
		call.Keys = append(slices.Clone(call.Keys), a.d.names.tomb(a.slot, a.beside))
	}
	a.d.mayBeWatched(call, a.r.Key, telling)
	call.Replicas, call.ReplicaTimeout = a.d.opts.Replicas, a.d.opts.ReplicaTimeout
}

// heard takes in the answer to a request that was sent at the instant sent. It may set a.answer, on which run acts
// next.
func (a *attempt) heard(give *driver.Release, answer Reply, sent time.Time) error {
	if word, reason, _ := strings.Cut(answer.Text, " "); give != nil && word == "lost" {
		if a.owed == nil {
			return lostError(give.Key, reason)
		}
		// It was given up before, and its time is over, so the next heartbeat asks for the lock alone.
		a.owed = nil
		return errOwed
	}
	if a.cond != nil {
		if err := a.cond.answered(a, answer); err != nil {
			return err
		}
	}
	a.sent, a.answer = sent, parseReply(answer)
	// The answer to the common grant is short; what it leaves out is what was asked for.
	a.answer.asAsked(a.tokens(), a.r.ID, a.r.Lease)
	if give != nil && (a.answer.verdict == granted || a.answer.verdict == queued) {
		a.d.buryRequest(give.ID) // the server has done that part too, so nothing is left to confirm
		a.owed = nil
		if !a.d.isAcked(answer) {
			a.owed = give
		}
	}
	if a.answer.verdict == granted && answer.Acked < a.d.opts.Replicas {
		a.unknown = true // a failover may forget this grant, so it is none
		return a.d.tooFewReplicas(answer.Acked)
	}
	return nil
}

// failed takes in a call without an answer. Unless the error says that the call has not run, a copy may run later: the
// entry is marked open, so that its release leaves a tombstone on the server.
func (a *attempt) failed(err error) error {
	if a.d.isClosed() {
		return driver.ErrClosed
	}
	if judgeError(err, false).class == mayHaveRun && !isRefusal(err) {
		a.unknown = true
		a.d.markOutcomeUnknown(a.e)
	}
	return err
}

// isEnd reports whether err says that a context has ended.
func isEnd(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// isRefusal reports whether a call has not run.
func isRefusal(err error) bool {
	var refused *RefusedError
	return errors.As(err, &refused)
}

// explain turns an error of the attempt into one of the seam's classes (docs/rationale.md, Classes of errors). A
// refusal is only passed on as definite if no earlier call has an unknown outcome. The caller undoes everything that is
// not definite.
func (a *attempt) explain(err error) error {
	switch {
	case errors.Is(err, driver.ErrLost), isEnd(err) && (a.waited || !isRefusal(err)):
		return err
	case driver.IsDefinite(err) && !a.unknown && !a.d.outcomeUnknown(a.e) &&
		!(a.waited && errors.Is(err, driver.ErrClosed)):
		return err
	case driver.IsDefinite(err):
		// Another copy of the request may still be granted, or its place in the queue is left.
		return errors.Join(err, &driver.UnavailableError{Op: "acquire", Name: a.r.Name})
	}
	return a.d.sorted("acquire", a.r.Key, err, a.unknown || a.waited || a.d.outcomeUnknown(a.e))
}
