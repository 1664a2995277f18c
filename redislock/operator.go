// What operators change: a holder, by Break, and the limit of a semaphore. inspect.go has what they see.

package redislock

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/interlock-go/interlock/driver"
)

// Break takes a lock from its holder: one script, and a push that notices.go receives at the holder.

// Break takes a lock from the owner that has the given token, tells its holders by a push, and lets in the waiters, in
// one round trip, or in one for each 200 of very many readers. The token must be a current one: it is compared in the
// script, so a break that comes late cannot hit the next owner. It returns driver.ErrNotHeld if nobody holds the lock,
// and a *driver.HeldError if another token is in use.
//
// With Options.Replicas it also waits for the replicas. If too few acknowledge, the error matches
// driver.ErrUnavailable: the hold is broken, and a failover may bring it back.
//
// Renewals and releases of the broken holds find nothing from then on. A holder whose connection is broken at that
// moment learns of the break by its next renewal.
func (d *Driver) Break(ctx context.Context, key driver.Key, token uint64) error {
	if d.isClosed() {
		return driver.ErrClosed
	}
	name, slot := d.names.lock(key)
	call := &Call{
		Script: breakScript, Slot: slot,
		// The script makes the tombstone's key for each broken hold from this prefix.
		Keys: []string{name, d.names.floor(slot), d.names.tomb(slot, "")},
		Args: []string{strconv.FormatUint(token, 10)},
	}
	telling := watchedBreakScript
	if d.opts.Replicas > 0 {
		call.Script, telling = touchedBreakScript, touchedWatchedBreakScript
		d.waitForReplicas(call)
	}
	d.mayBeWatched(call, key, telling)
	answer := d.acked(call, d.conn.Call(ctx, call))
	word, rest, _ := strings.Cut(answer.Text, " ")
	for answer.Err == nil && word == "more" { // more read than one run looks at
		call.Args = append([]string{call.Args[0]}, strings.Fields(rest)...)
		answer = d.acked(call, d.conn.Call(ctx, call))
		word, rest, _ = strings.Cut(answer.Text, " ")
	}
	if answer.Err != nil {
		return d.unavailable(ctx, "break", key, answer.Err)
	}
	switch word {
	case "ok":
		return nil
	case "free":
		return driver.ErrNotHeld
	case "H":
		a := parseReply(answer)
		return a.holder.heldError(key)
	case "newer":
		return d.newer("break", key, rest)
	}
	return fmt.Errorf("redis: the answer %q to a break cannot be read", answer.Text)
}

// Resize, the change of a semaphore's limit (docs/rationale.md, Adoption): one script, which also drains the queue.

var _ driver.Resizer = (*Driver)(nil)

// Resize changes the limit of a semaphore that is in use, and lets in the waiters that now fit, in one round trip.
// Holders keep their permits when the limit shrinks. A smaller limit costs the server a look at each waiting request,
// and a round trip for each 400 of them; one that waits for more permits than the new limit makes it
// driver.ErrConflict.
func (d *Driver) Resize(ctx context.Context, key driver.Key, limit int) error {
	switch {
	case d.isClosed():
		return driver.ErrClosed
	case key.Kind != driver.KindSemaphore || limit < 1:
		return fmt.Errorf("redis: the limit %d of a lock of kind %q: %w", limit, key.Kind, driver.ErrUnsupported)
	}
	name, slot := d.names.lock(key)
	call := &Call{
		Script: resizeScript, Slot: slot,
		Keys: []string{name, d.names.floor(slot), d.names.tomb(slot, "")},
		Args: []string{strconv.Itoa(limit)},
		// Otherwise a failover would bring back the old limit.
		Replicas: d.opts.Replicas, ReplicaTimeout: d.opts.ReplicaTimeout,
	}
	answer := d.callTwice(ctx, call)
	word, detail, _ := strings.Cut(answer.Text, " ")
	for answer.Err == nil && word == "more" { // more wait than one run looks at
		call.Args = append([]string{strconv.Itoa(limit)}, strings.Fields(detail)...)
		answer = d.callTwice(ctx, call)
		word, detail, _ = strings.Cut(answer.Text, " ")
	}
	if answer.Err != nil {
		return d.unavailable(ctx, "resize", key, answer.Err)
	}
	switch {
	case word == "conflict":
		return fmt.Errorf("a request for %s permits waits, so the limit cannot be %d: %w", detail, limit,
			driver.ErrConflict)
	case word == "newer":
		return d.newer("resize", key, detail)
	case word != "ok":
		return fmt.Errorf("redis: the answer %q to a change of the limit cannot be read", answer.Text)
	case answer.Acked < d.opts.Replicas:
		return &driver.UnavailableError{Op: "resize", Name: key.Name, Err: d.tooFewReplicas(answer.Acked)}
	}
	return nil
}
