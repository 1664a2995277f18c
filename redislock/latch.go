// Latches: each change is one script, which leaves a tombstone with its answer, so that a repetition changes nothing.
// watch.go tells its waiters of zero.

package redislock

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/interlock-go/interlock/driver"
)

var _ driver.Latcher = (*Driver)(nil)

// SetLatch sets a latch to a count, in one round trip. It reports false, and changes nothing, if the latch still
// counts. The same ID within the horizon gets the same answer.
func (d *Driver) SetLatch(ctx context.Context, c *driver.LatchCall) (bool, error) {
	word, _, err := d.latch(ctx, "set latch", latchSetScript, c, c.ID, strconv.FormatInt(c.Count, 10),
		inMillis(max(c.Horizon, shortestTomb)))
	return word == "set", err
}

// CountDown counts one down, in one round trip, and returns what is left. At zero the same script tells those who
// watch. The same ID within the horizon counts once.
func (d *Driver) CountDown(ctx context.Context, c *driver.LatchCall) (int64, error) {
	_, left, err := d.latch(ctx, "count down", latchDownScript, c, c.ID, inMillis(max(c.Horizon, shortestTomb)))
	return left, err
}

// LatchCount reads the count, in one round trip. A latch that does not exist counts 0. With Options.Replicas it waits
// for the replicas, and is driver.ErrUnavailable if too few have what it has read: who has seen zero goes on for good.
func (d *Driver) LatchCount(ctx context.Context, key driver.Key) (int64, error) {
	script := latchCountScript
	if d.opts.Replicas > 0 {
		script = touchedLatchCountScript
	}
	_, left, err := d.latch(ctx, "look at latch", script, &driver.LatchCall{Key: key})
	return left, err
}

// latch runs one of the scripts of latches, and splits its answer. Without a c.ID the call only reads.
func (d *Driver) latch(
	ctx context.Context, op string, script *Script, c *driver.LatchCall, args ...string,
) (word string, left int64, err error) {
	switch {
	case c.Kind != driver.KindLatch:
		return "", 0, fmt.Errorf("redis: a latch of kind %q: %w", c.Kind, driver.ErrUnsupported)
	case d.isClosed():
		return "", 0, driver.ErrClosed
	}
	name, slot := d.names.lock(c.Key)
	call := &Call{Script: script, Slot: slot, Keys: []string{name}, Args: args}
	if c.ID != "" { // it changes something
		call.Keys = append(call.Keys, d.names.tomb(slot, c.ID), d.names.watchers(slot, c.Key))
	} else if script == touchedLatchCountScript {
		call.Keys = append(call.Keys, d.names.floor(slot))
	}
	// A failover may forget the change, so with too few replicas its outcome is unknown, and the caller repeats it by
	// its ID.
	d.waitForReplicas(call)
	answer := d.acked(call, d.callTwice(ctx, call))
	if answer.Err != nil {
		return "", 0, d.unavailable(ctx, op, c.Key, answer.Err)
	}
	word, rest, _ := strings.Cut(answer.Text, " ")
	switch word {
	case "set", "counting":
		return word, 0, nil
	case "left":
		left, err = strconv.ParseInt(rest, 10, 64)
	case "newer":
		return word, 0, d.newer(op, c.Key, rest)
	default:
		err = fmt.Errorf("an unknown word")
	}
	if err != nil {
		err = fmt.Errorf("redis: the answer %q of a latch cannot be read: %w", answer.Text, err)
	}
	return word, left, err
}
