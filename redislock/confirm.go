// Confirm, which only package redlock uses: it gives the tokens that a majority agreed on to a hold of this server.

package redislock

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Confirmation is the argument of [Driver.Confirm].
type Confirmation struct {
	driver.Key
	ID     string        // of the hold
	Lease  time.Duration // how long the hold lasts from now
	Token  uint64        // the first of the block
	Tokens int           // how many there are in it, at least 1
}

// Confirm extends a hold to its lease from now, as Renew does, and replaces its tokens by ones that were chosen
// elsewhere. The server's later tokens are greater than these; tokens smaller than its own are set all the same. It is
// for locks that several servers keep together; see package redlock. It costs one round trip.
//
// An error that matches driver.ErrLost says that there is no such hold; after any other error the outcome is unknown.
func (d *Driver) Confirm(ctx context.Context, c *Confirmation) error {
	if d.isClosed() {
		return driver.ErrClosed
	}
	keys, slot := d.names.request(c.Key, c.ID)
	// A block is stored by its first and its last token.
	last := c.Token + uint64(max(c.Tokens, 1)) - 1
	answer := d.conn.Call(ctx, &Call{
		Script: confirmScript, Slot: slot, Keys: keys[:],
		Args:     []string{c.ID, leaseMillis(c.Lease), digits(c.Token), digits(last)},
		Replicas: d.opts.Replicas, ReplicaTimeout: d.opts.ReplicaTimeout,
	})
	if answer.Err != nil {
		return d.unavailable(ctx, "confirm", c.Key, answer.Err)
	}
	word, reason, _ := strings.Cut(answer.Text, " ")
	switch {
	case word == "lost":
		return lostError(c.Key, reason)
	case word == "newer":
		return d.newer("confirm", c.Key, reason)
	case word != "ok":
		return fmt.Errorf("redis: the answer %q to a confirmation cannot be read", answer.Text)
	// The hold was extended at the primary alone, so a failover could forget that.
	case answer.Acked < d.opts.Replicas:
		return &driver.UnavailableError{Op: "confirm", Name: c.Name, Err: d.tooFewReplicas(answer.Acked)}
	}
	return nil
}

// digits writes a token with leading zeros, 16 digits wide, because the scripts compare tokens as strings.
func digits(token uint64) string {
	s := strconv.FormatUint(token, 10)
	return strings.Repeat("0", max(16-len(s), 0)) + s
}
