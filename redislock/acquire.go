package redislock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
)

const (
	// retry is between two attempts to reach a server that a wait has lost.
	retry = 100 * time.Millisecond
	// spread is the time between the looks of two waiters of a lock whose holder may have died: the first in line is
	// to find it first.
	spread = 2 * time.Millisecond
	// firsts is how many of those at the head of a queue do look for that, however many wait.
	firsts = 16
	// unfinished is how soon the server has somebody ask again when a run has done enough and there is more to do.
	unfinished = 100 * time.Millisecond
)

// attempt is one Acquire or Requeue under way.
type attempt struct {
	d    *Driver
	r    *driver.Request
	e    *entry
	slot uint16
	keys [3]string
	args [5]string
	call Call

	cond   *condWait // it waits for the signal of a condition; nil if it does not
	beside string    // the ID of the hold beside which it asks; empty if none
	adopts string    // the ID of the hold that it adopts; empty if none

	claim   time.Duration
	listens bool // to the slot's pushes, in a Cluster
	told    holder
	waited  bool    // the server has queued the request at least once
	counted bool    // among those for whom the process speaks
	luck    float64 // by which it is one of the scouts of its process
	unknown bool    // a call's outcome is unknown
	ran     bool    // a call may have run, whatever came of it

	sent   time.Time // when the call of the last answer was sent
	answer reply
}

// Acquire asks the server. If somebody is in the way, the request is queued there, and the grant comes by a push; until
// then a heartbeat a second keeps the place. A wait survives broken connections and failovers for as long as the server
// comes back before the place is lost; after that it is at the end of the queue.
//
// It costs one round trip, and one more with Options.Replicas, or when a push could not be trusted by itself, or for
// the first wait in a slot of a Cluster.
func (d *Driver) Acquire(ctx context.Context, r *driver.Request) (driver.Grant, error) {
	return d.acquire(ctx, r, nil, "")
}

// Requeue releases give and acquires r, behind everybody who waits, in one round trip. It is for requests of one
// exclusive hold without a named owner; others are refused with an error matching driver.ErrUnsupported.
func (d *Driver) Requeue(ctx context.Context, give *driver.Release, r *driver.Request) (driver.Grant, error) {
	if r.Named || r.Try || r.Mode != driver.Exclusive || give.Undo || give.Keep > 0 || give.Key != r.Key {
		return driver.Grant{}, fmt.Errorf("redis: requeue is for plain exclusive holds: %w", driver.ErrUnsupported)
	}
	return d.acquire(ctx, r, give, "")
}

// acquire acquires r, after giving back give, if not nil, or beside the hold with that ID, if not empty.
func (d *Driver) acquire(
	ctx context.Context, r *driver.Request, give *driver.Release, beside string,
) (driver.Grant, error) {
	if err := check(r); err != nil {
		return driver.Grant{}, err
	}
	if err := ctx.Err(); err != nil {
		return driver.Grant{}, err
	}
	e, err := d.enter(r)
	if err != nil {
		return driver.Grant{}, err
	}
	a := d.newAttempt(r, e, beside)
	return a.end(a.run(ctx, a.askFirst(ctx, give)))
}

// end takes in how the attempt ended.
func (a *attempt) end(g driver.Grant, err error) (driver.Grant, error) {
	a.stopListening()
	if a.counted {
		a.d.presence.leave()
	}
	if err == nil {
		err = a.d.hold(a.r.ID, a.e)
	}
	if err == nil {
		return g, nil
	}
	err = a.explain(err)
	a.d.leave(a.r.ID, a.e, a.ran, driver.IsDefinite(err))
	return driver.Grant{}, err
}

// run goes on from the first answer, or its error, until there is a grant or an error.
func (a *attempt) run(ctx context.Context, err error) (driver.Grant, error) {
	for err == nil {
		switch a.answer.verdict {
		case granted:
			return a.grant(), nil
		case queued:
			a.waits()
		case parked:
		default:
			return driver.Grant{}, a.answer.refusal(a.r)
		}
		var p *push
		p, err = a.news(ctx, a.pause())
		switch {
		case err != nil:
		case p == nil:
			err = a.heartbeat(ctx)
		case p.grant.verdict == stuck && p.grant.now >= a.answer.now:
			// out of the queue; asked again it could get a new place
			return driver.Grant{}, p.grant.refusal(a.r)
		case p.grant.verdict != granted || !a.trusts(p):
			err = a.heartbeat(ctx) // rather ask: it answers what the push said, and why, and claims
		default:
			return a.pushed(p), nil
		}
	}
	return driver.Grant{}, err
}

// askFirst sends the request for the first time. A server that cannot be reached is told at once.
func (a *attempt) askFirst(ctx context.Context, give *driver.Release) error {
	way := byte('p')
	switch {
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
	a.setWay(way)
	if err := a.ask(ctx, give); err != nil || a.answer.verdict != wouldWait {
		return err
	}
	if err := a.listen(ctx); err != nil {
		return err
	}
	a.setWay('s')
	return a.ask(ctx, nil)
}

// heartbeat asks again, until the server answers: the place in its queue is worth keeping through a failover. What it
// refuses for good is an answer too.
func (a *attempt) heartbeat(ctx context.Context) error {
	for {
		err := a.listen(ctx)
		if err == nil {
			err = a.ask(ctx, nil)
		}
		if err == nil || ctx.Err() != nil || errors.Is(err, driver.ErrClosed) || isFinal(err) {
			return err
		}
		select {
		case <-time.After(retry/2 + rand.N(retry)):
		case <-ctx.Done():
			return ctx.Err()
		case <-a.d.closing:
			return driver.ErrClosed
		}
	}
}

// ask sends the request once, and with give the release of another hold in the same run.
func (a *attempt) ask(ctx context.Context, give *driver.Release) error {
	a.write(give)
	sent := time.Now() // before the request, so not later than the server's own instant
	answer := a.d.conn.Call(ctx, &a.call)
	a.ran = a.ran || !isRefusal(answer.Err)
	if answer.Err != nil {
		return a.failed(answer.Err)
	}
	return a.heard(give, answer, sent)
}

// write makes the call: one script, whose keys and arguments are those of a plain request and then those of what
// comes with it.
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

// heard takes in what the server said to a request that began at sent.
func (a *attempt) heard(give *driver.Release, answer Reply, sent time.Time) error {
	if give != nil {
		if word, reason, _ := strings.Cut(answer.Text, " "); word == "lost" {
			return lostError(give.Key, reason)
		}
	}
	if a.cond != nil {
		if err := a.cond.answered(a, answer.Text); err != nil {
			return err
		}
	}
	a.sent, a.answer = sent, parseReply(answer)
	a.answer.asAsked(a.tokens(), a.r.ID, a.r.Lease)
	if give != nil && (a.answer.verdict == granted || a.answer.verdict == queued) {
		a.d.over(give.ID) // the server has done that part too, so nothing is left to confirm
	}
	if a.answer.verdict == granted && answer.Acked < a.d.opts.Replicas {
		a.unknown = true // a failover may forget this grant, so it is none
		return a.d.tooFewReplicas(answer.Acked)
	}
	return nil
}

// failed takes in that a call brought no answer.
func (a *attempt) failed(err error) error {
	if a.d.isClosed() {
		return driver.ErrClosed
	}
	if judgeError(err, false).class == mayHaveRun && !isRefusal(err) {
		a.unknown = true
		a.d.opened(a.e)
	}
	return err
}

// isRefusal reports whether a call has not run.
func isRefusal(err error) bool {
	var refused *RefusedError
	return errors.As(err, &refused)
}

// explain makes an error of the attempt one of the seam's.
func (a *attempt) explain(err error) error {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.Is(err, driver.ErrLost):
		return err
	case driver.IsDefinite(err) && !a.unknown && !a.d.hasOpened(a.e) && !(a.waited && errors.Is(err, driver.ErrClosed)):
		return err
	case driver.IsDefinite(err):
		// but another copy of the request may still be granted, or its place in the queue is left
		return errors.Join(err, &driver.UnavailableError{Op: "acquire", Name: a.r.Name})
	}
	return a.d.sorted("acquire", a.r.Key, err, a.unknown || a.waited || a.d.hasOpened(a.e))
}

// pause is how long to wait for a push before asking again: a heartbeat, or until something may have changed by itself.
func (a *attempt) pause() time.Duration {
	heartbeat := a.claim/2 - rand.N(a.claim/10+1)
	if a.counted {
		heartbeat = a.d.presence.pause(heartbeat, a.answer.length)
		if a.answer.queuePlace > firsts && a.answer.next > unfinished && !a.d.presence.scouts(a.answer.length, a.luck) {
			return heartbeat
		}
	}
	if a.answer.next > 0 {
		heartbeat = min(heartbeat, a.answer.next+time.Millisecond+time.Duration(max(a.answer.queuePlace-1, 0))*spread)
	}
	return heartbeat
}

// waits tells the caller who is in the way, if that is news.
func (a *attempt) waits() {
	if a.r.Waiting != nil && (!a.waited || a.told != a.answer.holder) {
		a.told = a.answer.holder
		a.r.Waiting(a.told.heldError(a.r.Key))
	}
	a.waited = true
	if a.spokenFor() && !a.counted {
		a.counted, a.luck = true, rand.Float64()
		a.d.presence.enter(a.d)
	}
}
