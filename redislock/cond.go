package redislock

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/driver"
)

var _ driver.Conder = (*Driver)(nil)

// condWait is what an attempt to wait for a condition has beyond others.
type condWait struct {
	give   *driver.Release
	parked func()
	told   bool // parked was called: the server has taken the hold that was given up
}

// CondWait gives a hold up for a wait in the server, in one round trip, and keeps its place there by a heartbeat a
// second, as a wait for a lock. The signal moves it to the lock's queue, and the grant comes by a push. If the server
// has lost the place, it is at the end of the lock's queue then.
func (d *Driver) CondWait(
	ctx context.Context, give *driver.Release, r *driver.Request, parked func(),
) (driver.Grant, error) {
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
	return a.end(a.run(ctx, a.askFirst(ctx, nil)))
}

// fill makes the call one of a wait for a condition.
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

// answered takes in what is not an answer to every acquire.
func (c *condWait) answered(a *attempt, text string) error {
	word, reason, _ := strings.Cut(text, " ")
	switch word {
	case "nested":
		return fmt.Errorf("the owner %q has further holds: %w", a.r.Owner, driver.ErrNested)
	case "lost":
		return lostError(a.r.Key, reason)
	case "C", "Q", "W", "G":
		if !c.told {
			c.told = true
			a.d.over(c.give.ID)
			c.parked()
		}
	}
	return nil
}

// CondSignal wakes one or all, in one round trip.
func (d *Driver) CondSignal(ctx context.Context, s *driver.Signal) error {
	switch {
	case s.Kind != driver.KindMutex:
		return fmt.Errorf("redis: a condition of a lock of kind %q: %w", s.Kind, driver.ErrUnsupported)
	case d.isClosed():
		return driver.ErrClosed
	}
	all := "0"
	if s.All {
		all = "1"
	}
	keys, slot := d.names.request(s.Key, s.ID)
	call := &Call{
		Script: condSignalScript, Slot: slot, Keys: keys[:],
		Args: []string{s.ID, all, inMillis(max(s.Horizon, shortestTomb))}, Replicas: d.opts.Replicas,
		ReplicaTimeout: d.opts.ReplicaTimeout,
	}
	answer := d.conn.Call(ctx, call)
	if answer.Err == nil && answer.Acked < call.Replicas {
		answer.Err = d.tooFewReplicas(answer.Acked)
	}
	if answer.Err != nil {
		return d.unavailable(ctx, "signal", s.Key, answer.Err)
	}
	word, version, _ := strings.Cut(answer.Text, " ")
	switch word {
	case "ok":
		return nil
	case "newer":
		return d.newer("signal", s.Key, version)
	}
	return fmt.Errorf("redis: the answer %q to a signal cannot be read", answer.Text)
}
