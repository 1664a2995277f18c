// Resize, the change of a semaphore's limit (docs/rationale.md, Adoption): one script, which also drains the queue.

package redislock

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/interlock-go/interlock/driver"
)

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
