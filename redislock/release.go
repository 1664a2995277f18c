// Release. It ends what acquire.go has begun; the release of a Requeue is in that script. entry.go forgets the request
// here.

package redislock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// shortestTomb is how long a tombstone refuses at least. Requests without a horizon may be under way for a while too.
const shortestTomb = 10 * time.Second

// Release ends a hold and lets the next waiter in, in one round trip. It sends the script once and blocks for that. An
// error that matches driver.ErrLost says that the hold was over before; after any other error the outcome is unknown,
// and the caller releases again. Whatever the outcome, the driver keeps nothing of the request from then on.
//
// To undo a request of which nothing was ever sent costs nothing.
func (d *Driver) Release(ctx context.Context, r *driver.Release) error {
	if d.isClosed() {
		return driver.ErrClosed
	}
	if r.Undo && d.wasNotSent(r.ID) {
		d.buryRequest(r.ID)
		return nil
	}
	err := d.release(ctx, r)
	if r.Undo {
		d.presence.withdrew(d, r.ID, err)
	}
	// A hold that was over is as confirmed as one that was ended.
	if err == nil || errors.Is(err, driver.ErrLost) {
		d.buryRequest(r.ID)
	} else {
		d.unconfirmed(r.ID)
	}
	return err
}

// withdraw makes a refusal of requests definite of which a copy may be under way: it undoes them, with a tombstone
// against late copies, in one round trip. It reports false if the server has not confirmed that, or if the caller has a
// copy of its own: then the refusal stays one of unknown outcome, and the caller undoes what may be left. That nothing
// was done is told as certain, so it waits for the replicas.
func (d *Driver) withdraw(ctx context.Context, requests []*driver.Request, entries []*entry) bool {
	if ctx.Err() != nil || d.isClosed() || !d.areOurs(requests, entries) {
		return false
	}
	calls := make([]Call, len(requests))
	for i, r := range requests {
		var q releasing
		d.write(&q, &driver.Release{Key: r.Key, ID: r.ID, Undo: true, Horizon: r.Lease}, true)
		calls[i] = q.call
	}
	var undone atomic.Int64
	d.conn.Batch(ctx, calls, func(i int, r Reply) {
		if r = d.acked(&calls[i], r); r.Err == nil && r.Text == "ok" {
			undone.Add(1)
		}
	})
	if int(undone.Load()) < len(requests) {
		return false
	}
	for _, r := range requests {
		d.buryRequest(r.ID)
	}
	return true
}

// areOurs reports whether nobody has asked for a copy of these requests but this driver itself.
func (d *Driver) areOurs(requests []*driver.Request, entries []*entry) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, e := range entries {
		if d.entries[requests[i].ID] != e || e.copied || e.left {
			return false
		}
	}
	return true
}

// release asks the server once.
func (d *Driver) release(ctx context.Context, r *driver.Release) error {
	var q releasing
	// That the lock stays closed must not be forgotten by a failover that keeps the grant. Of the other releases, undos
	// among them, release.go takes care.
	d.write(&q, r, keepFor(r) != "0")
	return d.released(ctx, r, d.acked(&q.call, d.conn.Call(ctx, &q.call)))
}

// released reads the answer to a release.
func (d *Driver) released(ctx context.Context, r *driver.Release, answer Reply) error {
	if answer.Err != nil {
		return d.unavailable(ctx, "release", r.Key, answer.Err)
	}
	word, reason, _ := strings.Cut(answer.Text, " ")
	switch word {
	case "ok":
		if d.opts.Replicas > 0 && keepFor(r) == "0" { // nothing has waited for the replicas
			d.latest.note(r.Key, r.ID)
		}
		return nil
	case "lost":
		// The tombstone is here and not on the server: a plain release leaves none there.
		if d.wasReleased(r.ID) {
			reason = "gone"
		}
		return lostError(r.Key, reason)
	case "newer":
		return d.newer("release", r.Key, reason)
	}
	return fmt.Errorf("redis: the answer %q to a release cannot be read", answer.Text)
}

// write fills in the call of a release. With lasts it waits for the replicas.
func (d *Driver) write(q *releasing, r *driver.Release, lasts bool) {
	q.args = [4]string{r.ID, d.releaseKind(r), "", keepFor(r)}
	q.keys, q.call.Slot = d.names.request(r.Key, r.ID)
	q.call.Script, q.call.Keys, q.call.Args = releaseScript, q.keys[:], q.args[:1]
	// Most releases are plain: no late copies, nothing kept. What is not sent need not be made an argument of the
	// script.
	if q.args[1] != "" || q.args[3] != "0" {
		q.args[2] = inMillis(max(r.Horizon, shortestTomb))
		q.call.Args = q.args[:]
	}
	telling := watchedReleaseScript
	if d.opts.Replicas > 0 && lasts {
		q.call.Script, telling = touchedReleaseScript, touchedWatchedReleaseScript
		d.waitForReplicas(&q.call)
	}
	d.mayBeWatched(&q.call, r.Key, telling)
}

// releasing is the call of one release. Keys and arguments are in one piece with it, which saves allocations.
type releasing struct {
	call Call
	keys [3]string
	args [4]string
}

// releaseKind tells the script which late copies of the acquire it must refuse: of an undo (u), of a request with an
// unknown outcome (r), or none. Only the first two leave a tombstone, which costs a key that expires.
func (d *Driver) releaseKind(r *driver.Release) string {
	open := d.leaving(r.ID)
	switch {
	case r.Undo:
		return "u"
	case open:
		return "r"
	default:
		return ""
	}
}

// keepFor is how long the lock stays closed after the release, in ms. It rounds up, because Keep is a minimum.
func keepFor(r *driver.Release) string {
	if r.Keep <= 0 || r.Undo {
		return "0"
	}
	return leaseMillis(r.Keep)
}

// wasReleased reports whether this driver has confirmed a release of the request lately.
func (d *Driver) wasReleased(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.gone.Has(id)
}

// lostError is the error for a hold that a script did not find. A reason that is not known means that the lease has
// ended.
func lostError(key driver.Key, reason string) error {
	lost := &driver.LostError{Kind: key.Kind, Name: key.Name, Reason: driver.LostExpired}
	switch reason {
	case "gone":
		return errGone(key)
	case "taken":
		lost.Reason = driver.LostTaken
	case "broken":
		lost.Reason = driver.LostBroken
	case "adopted":
		lost.Reason = driver.LostAdopted
	}
	return lost
}

// unavailable is the error of a call that brought no answer, or was refused, and of which no earlier copy exists.
func (d *Driver) unavailable(ctx context.Context, op string, key driver.Key, err error) error {
	return d.callError(ctx, op, key, err, false)
}

// callError is the error of a call for key that ended with err. If the driver or ctx has ended, that is the better
// reason. copies says that the call may have been made before, so nobody can say that nothing has happened.
func (d *Driver) callError(ctx context.Context, op string, key driver.Key, err error, copies bool) error {
	switch {
	case d.isClosed():
		return driver.ErrClosed
	case ctx.Err() != nil && !isRefusal(err): // a refusal tells the end of ctx too, and what the server has said
		err = ctx.Err()
	}
	return d.sorted(op, key, err, copies)
}

// Plain releases that a failover may have forgotten, where replicas are waited for. Release notes them here, and
// notices.go says when a connection has broken.

// A plain release does not wait for the replicas: the next owner would wait too, and loses nothing. Nor does the undo
// of what somebody has given up: with a replica missing it would be repeated for minutes, by each of thousands who
// waited. A failover that forgets one brings back a hold or a place of which nobody knows any more: the hold closes the
// lock until its lease ends. So whatever was released lately is released once more when a connection has broken. The
// IDs are never used again, so that does nothing where nothing was forgotten.
const (
	mostReleasedAgain = 1024        // how many of the latest are noted
	releasedLately    = time.Minute // which is longer than a failover takes
)

// latestReleases are noted in a ring.
type latestReleases struct {
	mu    sync.Mutex // guards what follows
	ring  []releasedHold
	next  int         // where the next one goes, when the ring is full
	timer *time.Timer // nil until a connection has broken
	ended bool
}

// releasedHold is one of them.
type releasedHold struct {
	key driver.Key
	id  string
	at  time.Time
}

// note notes a release.
func (l *latestReleases) note(key driver.Key, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := releasedHold{key, id, time.Now()}
	if len(l.ring) < mostReleasedAgain {
		l.ring = append(l.ring, r)
		return
	}
	l.ring[l.next] = r
	l.next = (l.next + 1) % mostReleasedAgain
}

// repeat has them released again soon. It does not block.
func (l *latestReleases) repeat(d *Driver) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.ended || len(l.ring) == 0:
	case l.timer == nil:
		l.timer = time.AfterFunc(retry, func() { l.releaseAgain(d) })
	default:
		l.timer.Reset(retry)
	}
}

// stop ends that. A call under way ends with its connection.
func (l *latestReleases) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	if l.timer != nil {
		l.timer.Stop()
	}
}

// releaseAgain releases them once more, in the goroutine of the timer. While one is not answered, it does so again.
func (l *latestReleases) releaseAgain(d *Driver) {
	l.mu.Lock()
	var calls []Call
	for _, r := range l.ring {
		if time.Since(r.at) < releasedLately {
			keys, slot := d.names.request(r.key, r.id)
			c := Call{Script: releaseScript, Slot: slot, Keys: keys[:], Args: []string{r.id}}
			d.mayBeWatched(&c, r.key, watchedReleaseScript)
			calls = append(calls, c)
		}
	}
	l.mu.Unlock()
	if len(calls) == 0 {
		return
	}
	//nolint:forbidigo // for many releases, whose callers have returned
	ctx, cancel := context.WithTimeout(context.Background(), heartbeatEvery)
	var failed sync.Once
	again := false
	d.conn.Batch(ctx, calls, func(_ int, r Reply) {
		if r.Err != nil && !isFinal(r.Err) {
			failed.Do(func() { again = true })
		}
	})
	cancel()
	if again {
		l.repeat(d)
	}
}
