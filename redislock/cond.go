// Conditions (docs/rationale.md, Conditions): CondWait is an attempt of acquire.go with a second part, CondSignal one
// script. The queue of a condition is in scripts/cond.lua.

package redislock

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/interlock-go/interlock/driver"
)

var _ driver.Conder = (*Driver)(nil)

// condWait is what an attempt that waits for a condition has beyond others. Like the attempt, only its goroutine uses
// it.
type condWait struct {
	give   *driver.Release // the caller's: it is told once that the hold was given up
	parked func()
	told   bool // parked was called: the server has released the hold that was given up
}

// CondWait releases give and waits in the server for a signal, in one round trip: no signal can fall between the
// release and the wait. A heartbeat each second keeps the place, as for a lock. A signal moves the request to the
// lock's queue, and the grant comes by a push. CondWait blocks until then, and calls parked once when the server has
// released the hold.
//
// If the server loses the place, the request joins the end of the lock's queue, as if it had been signalled. An owner
// with further holds is refused with driver.ErrNested, and a hold that had ended before with driver.ErrLost.
func (d *Driver) CondWait(
	ctx context.Context, give *driver.Release, r *driver.Request, parked func(),
) (driver.Grant, error) {
	// Each of these would mean another thing to the script: a reader, a try, an undo, or another lock.
	if r.Kind != driver.KindMutex || r.Mode != driver.Exclusive || r.Try || give.Undo || give.Keep > 0 ||
		give.Key != r.Key {
		return driver.Grant{}, fmt.Errorf("redis: a wait for a condition is for exclusive holds of a mutex: %w",
			driver.ErrUnsupported)
	}
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
	a := d.newAttempt(r, e, "")
	a.cond = &condWait{give: give, parked: parked}
	g, err := a.run(ctx, a.askFirst(ctx, nil))
	return a.end(ctx, g, err)
}

// fill makes the call one of a wait for a condition. The last argument says whether the server has parked this request
// before: a heartbeat must not release the hold a second time.
func (c *condWait) fill(a *attempt, call *Call) {
	waits := "0"
	if c.told {
		waits = "1"
	}
	call.Script = condWaitScript
	call.Keys = append(slices.Clone(call.Keys), a.d.names.tomb(a.slot, c.give.ID))
	call.Args = append(slices.Clone(call.Args), c.give.ID, a.d.releaseKind(c.give),
		inMillis(max(c.give.Horizon, shortestTomb)), waits)
}

// answered handles the answers that only a wait for a condition has. Any answer that shows the request in the server's
// queues proves that the release has happened, so it also completes the release of give.
//
// Where too few replicas have acknowledged that, a failover may bring the hold back. So it is not told yet, and the
// next heartbeat gives the hold up again.
func (c *condWait) answered(a *attempt, answer Reply) error {
	word, reason, _ := strings.Cut(answer.Text, " ")
	switch word {
	case "nested":
		return fmt.Errorf("the owner %q has further holds: %w", a.r.Owner, driver.ErrNested)
	case "lost":
		return lostError(a.r.Key, reason)
	// The request is in a queue or granted, so the hold was released by the same script.
	case "C", "Q", "W", "G":
		if !c.told && a.d.isAcked(answer) {
			c.told = true
			a.d.buryRequest(c.give.ID)
			c.parked()
		}
	}
	return nil
}

// CondSignal wakes one waiter, or all, in one round trip for each 200 of them. Who begins to wait after the first is
// not woken. A repetition of the same ID within the horizon wakes nobody twice: the script leaves a tombstone. It does
// not wait for the woken.
func (d *Driver) CondSignal(ctx context.Context, s *driver.Signal) error {
	switch {
	case s.Kind != driver.KindMutex:
		return fmt.Errorf("redis: a condition of a lock of kind %q: %w", s.Kind, driver.ErrUnsupported)
	case d.isClosed():
		return driver.ErrClosed
	}
	before := ""
	for part := 0; ; part++ {
		next, err := d.condSignal(ctx, s, part, before)
		if next == "" || err != nil {
			return err
		}
		before = next
	}
}

// condSignal runs one part of a signal, which is known by an ID of its own: a repetition begins with the first again.
// It returns before which waiter the next part goes on, or an empty string if this was the last.
func (d *Driver) condSignal(ctx context.Context, s *driver.Signal, part int, before string) (next string, err error) {
	id := s.ID
	if part > 0 {
		id += "/" + strconv.Itoa(part)
	}
	keys, slot := d.names.request(s.Key, id)
	call := &Call{
		Script: condSignalScript, Slot: slot, Keys: keys[:],
		Args: []string{id, "0", inMillis(max(s.Horizon, shortestTomb))},
	}
	if s.All {
		call.Args[1] = "1"
	}
	if before != "" {
		call.Args = append(call.Args, before)
	}
	// A failover could forget the signal, and a waiter would sleep for ever; with too few replicas the outcome is
	// unknown, and the caller repeats it.
	d.waitForReplicas(call)
	answer := d.acked(call, d.callTwice(ctx, call))
	if answer.Err != nil {
		return "", d.unavailable(ctx, "signal", s.Key, answer.Err)
	}
	word, rest, _ := strings.Cut(answer.Text, " ")
	switch word {
	case "ok":
		return "", nil
	case "more":
		return rest, nil
	case "newer":
		return "", d.newer("signal", s.Key, rest)
	}
	return "", fmt.Errorf("redis: the answer %q to a signal cannot be read", answer.Text)
}
