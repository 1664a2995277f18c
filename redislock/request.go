// The request: what is refused before anything is sent, and the arguments of the acquire script. acquire_ask.go sends
// them; scripts/acquire_fast.lua describes them.

package redislock

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redislock/internal/word"
)

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
