// Break, by which an operator takes a lock from its holder: one script, and a push that notices.go receives at the
// holder.

package redislock

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/interlock-go/interlock/driver"
)

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
