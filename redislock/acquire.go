// This file runs one Acquire or Requeue from the request to its grant. request.go builds the texts of the request and
// entry.go keeps what the driver knows of it. acquire_ask.go sends the script and reads the answer, and grant.go
// decides whether a push counts.

package redislock

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/interlock-go/interlock/driver"
)

const (
	// spread is the delay between the looks of two neighbours in the queue of a lock whose holder may have died. The
	// first in line is to find that out first: its run clears the dead hold and grants, and the others' next answer
	// says so.
	spread = 2 * time.Millisecond
	// firsts is how many waiters at the head of a queue take part in that, however long the queue is. With more of
	// them, a death would cost the server one look for each waiter.
	firsts = 16
	// unfinished is the NEXT that a script answers when its run has done enough and there is more to do (100 ms in
	// acquire.lua). A waiter that reads it must ask again even if it is not one of the scouts.
	unfinished = 100 * time.Millisecond
)

// attempt is one Acquire, Requeue, Convert, Adopt or CondWait under way. Only the goroutine that made the call uses it,
// so it needs no lock; what other goroutines tell it goes through entry e.
type attempt struct {
	slotListener // with the driver, and the slot of the lock's key

	r *driver.Request
	e *entry
	// The keys and arguments of the script. They are arrays in the attempt, and call is reused for each heartbeat, so
	// that a wait allocates nothing for them.
	keys [3]string
	args [5]string
	call Call

	cond   *condWait // set while it waits for the signal of a condition, else nil
	beside string    // the ID of the hold beside which it asks; empty if none
	adopts string    // the ID of the hold that it adopts; empty if none

	// owed is the hold that a Requeue has given up, while too few replicas have acknowledged that: heartbeats give it
	// up again, or a failover would leave it closed for a lease.
	owed *driver.Release

	// claim is how long a pushed grant lasts unless it is claimed. Heartbeats come at less than half of it.
	claim   time.Duration
	told    holder  // who was in the way when r.Waiting was called last
	waited  bool    // the server has queued the request at least once
	counted bool    // it is counted in Driver.presence
	luck    float64 // from 0 to 1, drawn once: below a threshold it is one of the scouts of its process
	// unknown: at least one call has an unknown outcome, so a copy of the request may still be on its way to the
	// server.
	unknown bool
	// ran: at least one call may have run, known outcome or not. Without it nothing of the request can be on a server.
	ran bool

	sent   time.Time // our clock, just before the call of the last answer was sent
	answer reply
}

// Acquire asks the server for the lock. If the lock is taken, the server queues the request and later pushes the grant;
// a heartbeat each second keeps the place until then. Acquire blocks until the grant, a refusal, or the end of ctx or
// of the driver. A wait survives broken connections and failovers if the server is back before the place expires; after
// that the request is at the end of the queue.
//
// It costs one round trip. It costs one more with Options.Replicas, for a push that cannot be trusted by itself, and
// for the first wait in a slot of a Cluster.
//
// When it returns an error that is not definite (see driver.IsDefinite), the request may have been granted or queued:
// the caller must undo it with Release.
func (d *Driver) Acquire(ctx context.Context, r *driver.Request) (driver.Grant, error) {
	return d.acquire(ctx, r, nil, "")
}

// Requeue releases give and acquires r at the end of the queue, in one round trip. One script does both, so the
// releaser cannot get in again before the waiters, and no second call can fail in between. It is for requests of one
// exclusive hold without a named owner; others are refused with an error matching driver.ErrUnsupported.
func (d *Driver) Requeue(ctx context.Context, give *driver.Release, r *driver.Request) (driver.Grant, error) {
	if r.Named || r.Try || r.Mode != driver.Exclusive || give.Undo || give.Keep > 0 || give.Key != r.Key {
		return driver.Grant{}, fmt.Errorf("redis: requeue is for plain exclusive holds: %w", driver.ErrUnsupported)
	}
	return d.acquire(ctx, r, give, "")
}

// acquire acquires r. If give is set, the same run releases that hold first; if beside is set, r is asked for beside
// the hold with that ID. The entry is made before anything is sent, so that a push can find it as soon as the server
// knows the request.
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
	g, err := a.run(ctx, a.askFirst(ctx, give))
	return a.end(ctx, g, err)
}

// end records how the attempt ended. It stops listening first and only then registers the hold or forgets the entry, so
// that every path gives back what the attempt had counted.
func (a *attempt) end(ctx context.Context, g driver.Grant, err error) (driver.Grant, error) {
	a.stopListening()
	if a.counted {
		a.d.presence.leave()
	}
	// A hold is registered only now, when no push can go to the attempt any more. It fails if a Close or a release came
	// meanwhile.
	if err == nil {
		err = a.d.hold(a.r.ID, a.e)
	}
	if err == nil {
		return g, nil
	}
	if a.unknown && driver.IsDefinite(err) && a.d.withdraw(ctx, []*driver.Request{a.r}, []*entry{a.e}) {
		return driver.Grant{}, err
	}
	err = a.explain(err)
	a.d.leave(a.r.ID, a.e, a.ran, driver.IsDefinite(err))
	return driver.Grant{}, err
}

// run continues from the first answer, or its error, until there is a grant or an error. Each turn acts on the last
// answer, waits for news, and then asks again unless the news are a grant that can be trusted.
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
			// It is out of the queue. Asked again, the same request could be queued anew.
			return driver.Grant{}, p.grant.refusal(a.r)
		case p.grant.verdict != granted || !a.trusts(p):
			err = a.heartbeat(ctx) // ask: the answer says the same as the push, with the reason, and claims
		default:
			return a.pushed(p), nil
		}
	}
	return driver.Grant{}, err
}

// pause is how long to wait for a push before asking again. It is the heartbeat, or less if something may change by
// itself, such as the end of a lease. The heartbeat is a little under half the claim, so that two signs of life fall
// into each claim; a waiter that was silent for a claim is passed over (docs/rationale.md, Silent waiters). Its random
// part keeps waiters apart that were queued together.
//
// A waiter whose process speaks for it may pause longer. Far from the head it also leaves it to the scouts to notice a
// dead holder.
func (a *attempt) pause() time.Duration {
	heartbeat := a.claim/2 - rand.N(a.claim/10+1)
	if a.counted && a.spokenFor() {
		heartbeat = a.d.presence.pause(heartbeat, a.answer.length)
		if a.answer.queuePlace > firsts && a.answer.next > unfinished &&
			!a.d.presence.mustScout(a.answer.length, a.luck) {
			return heartbeat
		}
	}
	if a.answer.next > 0 {
		heartbeat = min(heartbeat, a.answer.next+time.Millisecond+time.Duration(max(a.answer.queuePlace-1, 0))*spread)
	}
	return heartbeat
}

// waits tells the caller who is in the way if that has changed, and counts the waiter as present in its process. It
// runs for each answer that says queued.
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
