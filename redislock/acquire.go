// One Acquire or Requeue, from the request to its grant. entry.go keeps what the driver knows of the request, and
// reply.go reads the answers.

package redislock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redislock/internal/word"
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

// The request: what is refused before anything is sent, and the arguments of the acquire script.
// scripts/acquire_fast.lua describes them.

const (
	// mostClaim is how long a pushed grant lasts unless it is claimed; a shorter lease bounds it too. Waiters that died
	// unnoticed cost as much together, however many there are (docs/rationale.md, Silent waiters).
	mostClaim = 2 * time.Second
	// heartbeatLasts is how many claim times a heartbeat counts, so that one may be lost. QUEUE_LASTS in lock.lua must
	// be longer.
	heartbeatLasts = 2.5
	// queuePlaceLasts is how long a place in the queue lasts without a request for it, if its process speaks for it
	// (see presence.go): two and a half of the longest pauses, so that two requests may be lost.
	queuePlaceLasts = 5 * mostPause / 2
	// mostQueued is how long a request that is not asked again may stay in a queue: until its place expires, and then a
	// grant that was pushed to it at the last moment.
	mostQueued = queuePlaceLasts + mostClaim
	// mostTokens is the largest block of tokens, MOST_TOKENS of lock.lua.
	mostTokens = 65536
)

// check refuses what can never be granted, before anything is sent. Each error matches driver.ErrUnsupported or
// driver.ErrConflict.
func check(r *driver.Request) error {
	switch {
	case !slices.Contains(kinds, r.Kind):
		return fmt.Errorf("redis: locks of kind %q: %w", r.Kind, driver.ErrUnsupported)
	case !word.Is(r.ID):
		return fmt.Errorf("redis: a request whose ID is empty or has spaces or control characters: %w",
			driver.ErrUnsupported)
	case r.Name == "" || len(r.Name) > 512:
		return fmt.Errorf("redis: a lock's name has 1 to 512 bytes, not %d: %w", len(r.Name), driver.ErrUnsupported)
	case r.Lease < time.Millisecond:
		return fmt.Errorf("redis: a lease of %v: %w", r.Lease, driver.ErrUnsupported)
	case r.Mode > driver.Upgradeable:
		return fmt.Errorf("redis: mode %d: %w", r.Mode, driver.ErrUnsupported)
	case r.Mode == driver.Exclusive:
		return nil // whatever Limit and Weight are
	case r.Mode == driver.Upgradeable && r.Limit != 0:
		return fmt.Errorf("redis: an upgradeable read of a lock with a limit: %w", driver.ErrUnsupported)
	case r.Limit < 0:
		return fmt.Errorf("redis: the limit %d is below zero: %w", r.Limit, driver.ErrConflict)
	case r.Weight < 1:
		return fmt.Errorf("redis: the weight %d is below one: %w", r.Weight, driver.ErrConflict)
	case r.Limit > 0 && r.Weight > r.Limit:
		return fmt.Errorf("redis: the weight %d is above the limit %d: %w", r.Weight, r.Limit, driver.ErrConflict)
	}
	return nil
}

// newAttempt returns an attempt for r whose arguments are complete but for the tail, which setTail adds when it is
// known how to wait.
func (d *Driver) newAttempt(r *driver.Request, e *entry, beside string) *attempt {
	a := &attempt{slotListener: slotListener{d: d}, r: r, e: e, beside: beside, claim: min(r.Lease, mostClaim)}
	a.keys, a.slot = d.names.request(r.Key, r.ID)
	a.args = [5]string{r.ID, leaseMillis(r.Lease), strconv.Itoa(a.tokens()), "", a.modeArgument()}
	return a
}

// tokens is the size of the block of tokens that it asks for.
func (a *attempt) tokens() int { return min(max(a.r.Tokens, 1), mostTokens) }

// plainRequest says that a request is exclusive, anonymous, not beside another hold, and without a delay. The quick
// parts of the scripts serve only these.
const plainRequest = "X"

// modes are the letters of driver.Mode in a script, in the order of its values.
const modes = "xsu"

// modeArgument tells the script what kind of request it is; the tail says how it waits. For what the words mean see
// acquire_fast.lua.
func (a *attempt) modeArgument() string {
	r := a.r
	if r.Mode == driver.Exclusive && !r.Named && a.beside == "" && r.LockDelay <= 0 {
		return plainRequest
	}
	weight, limit, owner := max(r.Weight, 1), r.Limit, ""
	if r.Mode == driver.Exclusive {
		weight, limit = 1, 0
	}
	if r.Named {
		owner = r.Owner
	}
	delay := ""
	if r.LockDelay > 0 {
		// Rounded up, because the delay is a minimum.
		delay = inMillis(r.LockDelay + time.Millisecond - 1)
	}
	return modes[r.Mode:r.Mode+1] + delay + " " + strconv.Itoa(weight) + " " + strconv.Itoa(limit) + " " + a.beside +
		" " + owner
}

// setTail sets the tail of the arguments, which is stored as it is: how the request waits, how long a sign of life
// counts, and META. See acquire_fast.lua.
func (a *attempt) setTail(way byte) {
	claim := a.claim.Milliseconds()
	b := append(make([]byte, 0, 192), way, ' ')
	b = append(strconv.AppendInt(b, claim, 10), ' ')
	lasts := int64(heartbeatLasts * float64(claim))
	// A request for which the process speaks needs no sign of life of its own.
	if way == 'P' {
		lasts = queuePlaceLasts.Milliseconds()
	}
	b = append(strconv.AppendInt(b, lasts, 10), ' ')
	b = append(append(b, a.args[1]...), ' ')
	b = append(append(b, a.args[2]...), ' ')
	b = append(append(b, a.d.channel...), ' ')
	a.args[3] = string(appendMeta(b, meta{markOf(a.r), a.r.Owner, a.r.Client, a.r.Label}))
}

// markOf is what the server is told about a hold that the client may keep after its release. Only exclusive holds of
// anonymous owners can be retained: a named owner may come back in another process.
func markOf(r *driver.Request) retention {
	if r.Retains && r.Mode == driver.Exclusive && !r.Named {
		return mayRetain
	}
	return unmarked
}

// leaseMillis is the lease that the server is asked for. The server counts in milliseconds and rounds its clock down,
// and must not end a lease before we do; so it gets up to 2 ms more.
func leaseMillis(t time.Duration) string { return inMillis(t + 2*time.Millisecond - 1) }

// inMillis writes a duration as the server counts it.
func inMillis(t time.Duration) string { return strconv.FormatInt(t.Milliseconds(), 10) }

// The round trips of an attempt: the first question, the heartbeats, and what an answer or an error says about copies
// of the request. conn.Call sends the script.

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

// From an answer or a push to a driver.Grant, and when a push may be trusted without a round trip. The rules are 6 and
// 9 of the hand-off (see the package documentation, Guarantees).

// grant is the grant that the server answered. Its lease counts from before the request was sent, on our clock.
func (a *attempt) grant() driver.Grant {
	return driver.Grant{
		Token: a.answer.token, Tokens: a.answer.tokens, Nonce: a.answer.nonce,
		Sent: a.sent, Lease: a.r.Lease,
	}
}

// trusts reports whether the instant of p can be told on our clock. It can by the difference between two instants of
// the same server, if both came over the same connection. If the instant is before our own request, or after the push
// arrived, the server's clock was set meanwhile, and the difference says nothing.
//
// With Replicas a push is only a hint: nobody knows whether the replicas have it. With a LockDelay too: a push that
// ends unclaimed goes back to the queue without a delay, so nobody may have acted on it.
func (a *attempt) trusts(p *push) bool {
	return a.d.opts.Replicas == 0 && a.r.LockDelay == 0 && p.grant.link != 0 && p.grant.link == a.answer.link &&
		p.grant.now >= a.answer.now && !a.granted(p).After(p.received)
}

// granted is the instant of the grant p on our clock, or a little before: the request reached the server after a.sent.
func (a *attempt) granted(p *push) time.Time {
	return a.sent.Add(time.Duration(p.grant.now-a.answer.now) * time.Microsecond)
}

// pushed is the grant of p. It has a short lease, counted from when the server granted it; the renewal that follows
// claims the full one (docs/rationale.md, Pushed grants). One percent and 2 ms are taken off for clocks of different
// rates and for the server's rounding to milliseconds.
func (a *attempt) pushed(p *push) driver.Grant {
	elapsed := time.Duration(p.grant.now-a.answer.now) * time.Microsecond
	return driver.Grant{
		Token: p.grant.token, Tokens: p.grant.tokens, Nonce: p.grant.nonce,
		Sent: a.sent.Add(elapsed - elapsed/100 - 2*time.Millisecond), Lease: p.grant.lease,
	}
}

// Adopt, the taking over of another client's hold (docs/rationale.md, Adoption): an attempt with another script and no
// queue.

var _ driver.Adopter = (*Driver)(nil)

// Adopt moves a hold of another client to r, in one round trip, and tells that client by a push; see [driver.Adopter].
// It never waits for the lock: it asks as a try does. The hold is known by its ID alone, so a hold that has ended, or
// was adopted before, is an error that matches driver.ErrLost.
func (d *Driver) Adopt(ctx context.Context, from string, r *driver.Request) (driver.Grant, error) {
	switch err := check(r); {
	case err != nil:
		return driver.Grant{}, err
	case !word.Is(from):
		return driver.Grant{}, errGone(r.Key) // no hold has this ID
	case ctx.Err() != nil:
		return driver.Grant{}, ctx.Err()
	}
	e, err := d.enter(r)
	if err != nil {
		return driver.Grant{}, err
	}
	a := d.newAttempt(r, e, "")
	a.adopts = from
	a.setTail('t')
	g, err := a.run(ctx, a.askTwice(ctx, nil))
	return a.end(ctx, g, err)
}

// adopting makes the call one that adopts. It has fixed keys and arguments, because nothing else can come with it.
func (a *attempt) adopting(call *Call) {
	call.Script = adoptScript
	call.Keys = []string{a.keys[0], a.keys[1], a.keys[2], a.d.names.tomb(a.slot, a.adopts)}
	call.Args = []string{a.args[0], a.args[1], a.args[2], a.args[3], a.adopts}
}

// Convert, the change of mode of a read/write lock: an attempt beside the hold that is converted.

// Convert asks for another mode of a read/write lock beside a hold of the same owner (docs/rationale.md, Conversions);
// see [driver.Converter]. It costs one round trip, and an upgrade that has to wait one message more. The hold beside
// stays until the caller releases it. If that hold is over, or ends during the wait, the error matches driver.ErrLost.
func (d *Driver) Convert(ctx context.Context, beside string, r *driver.Request) (driver.Grant, error) {
	switch {
	case r.Kind != driver.KindRWMutex:
		return driver.Grant{}, fmt.Errorf("redis: another mode of a lock of kind %q: %w", r.Kind, driver.ErrUnsupported)
	case !word.Is(beside):
		return driver.Grant{}, errGone(r.Key) // no hold has this ID
	}
	return d.acquire(ctx, r, nil, beside)
}
