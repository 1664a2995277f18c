// The driver around a redislock.Driver. format.go has the other library's scripts. The order of the two locks is the
// rule here: ours first when taking, the other's first when giving back.

package foreign

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/redislock"
	"github.com/interlock-go/interlock/redislock/conn"
)

var (
	_ driver.Driver    = (*Driver)(nil)
	_ driver.Renewer   = (*Driver)(nil)
	_ driver.Inspector = (*Driver)(nil)
	_ driver.Breaker   = (*Driver)(nil)
	_ driver.Diagnoser = (*Driver)(nil)

	_ driver.Reconnector = (*Driver)(nil)
)

// The pause between two looks at the other library's key while it is held: random, from half of a value that grows from
// firstPause to mostPause. What that library's own waiters do is of the same order (redsync 50 to 250 ms, bsm/redislock
// what it is told).
const (
	firstPause = 20 * time.Millisecond
	mostPause  = 250 * time.Millisecond
)

// Driver is a redislock.Driver whose mutexes exclude another library's too. It is safe for concurrent use and must
// not be copied.
type Driver struct {
	ours   *redislock.Driver
	theirs Format

	mu     sync.Mutex                         // guards giving
	giving enginekit.Tombstones[string, *int] // by the ID of the hold: how many releases have begun
}

// New returns a driver over ours, and closes ours when it is closed itself. Every program that takes the locks with
// interlock needs the same format for as long as a program of the other library runs. A nil driver panics.
func New(ours *redislock.Driver, theirs Format) *Driver {
	if ours == nil {
		panic("foreign: New needs a driver: see redislock.New")
	}
	return &Driver{ours: ours, theirs: theirs}
}

// alone is why most abilities are missing.
const alone = "the other library's lock has one holder and nothing else"

func unsupported(what, why string) error {
	return fmt.Errorf("redis with another library's locks: %s: %s: %w", what, why, driver.ErrUnsupported)
}

// Traits are those of redislock, without what the other library's lock cannot do.
func (d *Driver) Traits() driver.Traits {
	t := d.ours.Traits()
	t.Kinds = []driver.Kind{driver.KindMutex}
	t.Resumes = false // a place in the queue is worth nothing without the other key
	t.Unsupported = nil
	for _, a := range []driver.Ability{
		driver.NamedOwners, driver.Conversion, driver.Recalls, driver.LockDelays, driver.Adoption, driver.Resizing,
		driver.Ability(driver.KindRWMutex), driver.Ability(driver.KindSemaphore), driver.Ability(driver.KindElection),
		driver.Ability(driver.KindLatch), driver.Ability(driver.KindCond),
	} {
		t.Unsupported = append(t.Unsupported, driver.Unsupported{Ability: a, Reason: alone})
	}
	t.Unsupported = append(t.Unsupported, driver.Unsupported{
		Ability: driver.Order, Reason: "programs of the other library take the lock when they find it free",
	})
	return t
}

// Acquire takes our lock first, so that of all our programs only the first in the queue looks at the other key. Then it
// takes that key when it is free. It blocks until both are held, ctx ends, or a refusal.
func (d *Driver) Acquire(ctx context.Context, r *driver.Request) (driver.Grant, error) {
	switch {
	case !d.Traits().Supports(r.Kind):
		return driver.Grant{}, unsupported(string(r.Kind), alone)
	case r.Named:
		return driver.Grant{}, unsupported("named owners", alone)
	case r.LockDelay > 0:
		return driver.Grant{}, unsupported("lock delay", alone)
	}
	grant, err := d.ours.Acquire(ctx, r)
	if err != nil {
		return grant, err
	}
	w := &waiter{d: d, r: r, grant: grant, renewed: time.Now()}
	if err := w.wait(ctx); err != nil {
		return driver.Grant{}, d.without(ctx, r, err)
	}
	return w.grant, nil
}

// without gives our lock back because the other could not be had. A definite error must mean that nothing is taken. If
// that is not certain, the error says that it is open, and the portable layer undoes the request.
func (d *Driver) without(ctx context.Context, r *driver.Request, why error) error {
	if !driver.IsDefinite(why) {
		return why
	}
	if err := d.Release(ctx, &driver.Release{Key: r.Key, ID: r.ID, Undo: true}); err != nil {
		return errors.Join(why, &driver.UnavailableError{Op: "acquire", Name: r.Name, Err: err})
	}
	return why
}

// waiter is a request that has our lock and wants the other. Only its goroutine uses it.
type waiter struct {
	d       *Driver
	r       *driver.Request
	grant   driver.Grant
	renewed time.Time // when our lock was renewed last
}

// wait takes the other library's key, or looks at it again and again. Meanwhile it renews our lock, which would end
// otherwise.
func (w *waiter) wait(ctx context.Context) error {
	for pause := firstPause; ; pause = min(2*pause, mostPause) {
		held, err := w.take(ctx)
		if err == nil || held == nil {
			return err
		}
		if w.r.Try {
			return held
		}
		if w.r.Waiting != nil {
			w.r.Waiting(held)
		}
		if err := w.renew(ctx); err != nil {
			return err
		}
		timer := time.NewTimer(pause/2 + rand.N(pause/2))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

// take tries to take the key once. It returns who holds it, and that also as the error.
func (w *waiter) take(ctx context.Context) (*driver.HeldError, error) {
	answer, err := w.d.ask(ctx, "acquire", w.r.Key, w.d.call(
		w.d.theirs.scripts().take, w.r.Key, w.r.ID, w.r.Lease.Milliseconds(), w.grant.Token))
	if err != nil {
		return nil, err
	}
	word, rest, _ := strings.Cut(answer, " ")
	switch word {
	case "taken":
		return nil, nil //nolint:nilnil // nothing is in the way
	case "held":
		held := &driver.HeldError{Kind: w.r.Kind, Name: w.r.Name, Client: "another library", Owner: rest}
		return held, held
	}
	return nil, &driver.RefusedError{
		Op: "acquire", Name: w.r.Name,
		Err:  fmt.Errorf("key %q is of type %s", w.d.theirs.keyOf(w.r.Name), rest),
		Hint: "this key is not a lock of the format that was given to foreign.New",
	}
}

// renew renews our lock when a third of its lease has passed. A grant that was pushed is renewed at once, because it
// lasts for less.
func (w *waiter) renew(ctx context.Context) error {
	sent := time.Now()
	if w.grant.Lease >= w.r.Lease && sent.Sub(w.renewed) < w.r.Lease/3 {
		return nil
	}
	var err error
	w.d.ours.Renew(ctx, []driver.Renewal{{
		Key: w.r.Key, ID: w.r.ID, Lease: w.r.Lease, Owner: w.r.Owner, Label: w.r.Label,
	}}, func(_ int, answer error) { err = answer })
	if err == nil {
		w.renewed, w.grant.Sent, w.grant.Lease = sent, sent, w.r.Lease
	}
	if errors.Is(err, driver.ErrLost) || ctx.Err() != nil {
		return err
	}
	return nil // no answer: our lock lasts for a while yet, and the next look asks again
}

// Renew renews both locks, ours first: if ours has ended, the other library's key must not be extended. A hold is
// renewed only if both are. If one is lost the other is given back, or it would keep everybody out until its time is
// over. It costs two round trips for the batch, and two more for each hold that is lost.
func (d *Driver) Renew(ctx context.Context, batch []driver.Renewal, done func(i int, err error)) {
	var mu sync.Mutex // answers come from any goroutine
	var rest, lost []int
	answer := func(i int, err error) {
		done(i, err)
		if errors.Is(err, driver.ErrLost) && !errors.Is(err, driver.ErrUnavailable) {
			mu.Lock()
			lost = append(lost, i)
			mu.Unlock()
		}
	}
	d.ours.Renew(ctx, batch, func(i int, err error) {
		if err != nil {
			answer(i, err)
			return
		}
		mu.Lock()
		rest = append(rest, i)
		mu.Unlock()
	})
	calls := make([]conn.Call, len(rest))
	for n, i := range rest {
		calls[n] = *d.call(d.theirs.scripts().keep, batch[i].Key, batch[i].ID, batch[i].Lease.Milliseconds(), 0)
	}
	d.ours.Conn().Batch(ctx, calls, func(n int, r conn.Reply) {
		b := &batch[rest[n]]
		switch {
		case r.Err != nil:
			answer(rest[n], d.ours.Judge(ctx, "renew", b.Key, r.Err))
		case r.Text != "kept":
			answer(rest[n], &driver.LostError{Kind: b.Kind, Name: b.Name, Reason: driver.LostTaken, Cause: errGone})
		default:
			answer(rest[n], nil)
		}
	})
	for _, i := range lost {
		// What is left of it, on either side. If that is not heard of, it ends with its lease.
		_ = d.Release(ctx, &driver.Release{Key: batch[i].Key, ID: batch[i].ID})
	}
}

// errGone is the cause of a loss.
var errGone = errors.New("the other library's key is gone or has another value")

// Release gives the other library's key back first. The next of our waiters gets our lock by a message and would find
// the key held otherwise.
func (d *Driver) Release(ctx context.Context, r *driver.Release) error {
	releases := d.beginGiving(r.ID)
	answer, err := d.ask(ctx, "release", r.Key, d.call(
		d.theirs.scripts().give, r.Key, r.ID, r.Keep.Milliseconds(), 0))
	if err != nil && driver.Refusal(err) == nil {
		return err // and asked again
	}
	// It will not succeed later either: the key is left to its time to live.
	if err != nil {
		if ours := d.ours.Release(ctx, r); ours != nil || r.Undo { // the acquire has told of the refusal
			return ours
		}
		return err
	}
	// An earlier release that had begun before this answer may have given the key back: then nothing is lost.
	lost := answer == "gone" && releases() == 1 && !r.Undo
	if err := d.ours.Release(ctx, r); err != nil || !lost {
		return err
	}
	return &driver.LostError{Kind: r.Kind, Name: r.Name, Reason: driver.LostTaken, Cause: errGone}
}

// beginGiving records that a release of a hold begins. The function that it returns tells how many have begun by then.
func (d *Driver) beginGiving(id string) (begun func() int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.giving.Bury(id, new(int)) // which keeps the first
	n, _ := d.giving.Epitaph(id)
	*n++
	return func() int {
		d.mu.Lock()
		defer d.mu.Unlock()
		return *n
	}
}

// ask makes a call. Its errors never say that nothing has happened, because our lock is part of each operation.
func (d *Driver) ask(ctx context.Context, op string, key driver.Key, call *conn.Call) (string, error) {
	reply := d.ours.Conn().Call(ctx, call)
	if reply.Err != nil {
		return "", d.ours.Judge(ctx, op, key, reply.Err)
	}
	return reply.Text, nil
}

// Locks lists our locks. Those of programs of the other library are not among them.
func (d *Driver) Locks(ctx context.Context, prefix string) iter.Seq2[driver.LockInfo, error] {
	return d.ours.Locks(ctx, prefix)
}

// Break ends our hold, and gives the other library's key back: also if a Break before it has ended ours and not come to
// that. It costs two round trips.
func (d *Driver) Break(ctx context.Context, key driver.Key, token uint64) error {
	broken := d.ours.Break(ctx, key, token)
	if broken != nil && !errors.Is(broken, driver.ErrNotHeld) {
		return broken
	}
	if _, err := d.ask(ctx, "break", key, d.call(d.theirs.scripts().free, key, "", 0, token)); err != nil {
		return err
	}
	return broken
}

// OnReconnect tells of the connections of the driver below: the server may have forgotten either lock.
func (d *Driver) OnReconnect(f func()) (stop func()) { return d.ours.OnReconnect(f) }

// Diagnose judges the server.
func (d *Driver) Diagnose(ctx context.Context) []driver.Finding { return d.ours.Diagnose(ctx) }

// Close closes the driver below.
func (d *Driver) Close() error { return d.ours.Close() }
