package interlock

import (
	"context"
	"fmt"
	"iter"
	"unicode/utf8"

	"github.com/interlock-go/interlock/driver"
)

// Locks yields the locks whose names start with prefix and that are held or waited for, as the engine sees them, in no
// promised order. It is not a snapshot of all, but each LockInfo is consistent in itself. A lock that cannot be read,
// for instance because another program uses its key, has LockInfo.Unreadable set. An error ends the sequence; engines
// that cannot list yield ErrUnsupported. Goroutines that wait behind another of their own process are not known to the
// engine, and a lock passed on inside a process shows the owner of its last renewal.
func (c *Client) Locks(ctx context.Context, prefix string) iter.Seq2[LockInfo, error] {
	return func(yield func(LockInfo, error) bool) {
		if err := c.mayInspect(ctx, prefix); err != nil {
			yield(LockInfo{}, err)
			return
		}
		err := c.asking(ctx, func(ctx context.Context) error {
			for info, err := range c.d.(driver.Inspector).Locks(ctx, prefix) {
				if err != nil {
					return err
				}
				if !yield(info, nil) {
					return nil
				}
			}
			return nil
		})
		if err != nil {
			yield(LockInfo{}, wrap("list", driver.Key{Name: prefix}, err))
		}
	}
}

func (c *Client) mayInspect(ctx context.Context, prefix string) error {
	if err := ready(c.made(), ctx); err != nil {
		return err
	}
	if len(prefix) > maxNameBytes || !utf8.ValidString(prefix) {
		return fmt.Errorf("interlock: the prefix must be at most %d bytes of valid UTF-8", maxNameBytes)
	}
	if err := c.checkOpen(); err != nil {
		return err
	}
	if _, ok := c.d.(driver.Inspector); ok {
		return nil
	}
	reason, _ := c.traits.Lacking(driver.Holders)
	return fmt.Errorf("interlock: list %q: %w", prefix, unsupported(c.traits, reason))
}

// Break takes the lock from its holder, who learns of it as a loss (LostBroken), and gives it to the next in line. It
// does so only while the holder's token, or its block of tokens under local passes, is token: look it up with Locks. On
// a free lock it returns ErrNotHeld, and if the token is not a current one a *HeldError with the one that is. Latches
// and conditions have no holder: ErrUnsupported.
//
// The holder may be working still. Break is for operators who know that it is not, or that the resource checks a fence.
func (c *Client) Break(ctx context.Context, kind Kind, name string, token uint64) error {
	key := driver.Key{Kind: kind, Name: name}
	if err := ready(c.made(), ctx); err != nil {
		return err
	}
	if err := validateName("name of the lock", name); err != nil {
		return err
	}
	if err := c.checkOpen(); err != nil {
		return err
	}
	switch kind {
	case KindMutex, KindRWMutex, KindSemaphore, KindElection:
	case KindLatch, KindCond:
		return wrap("break", key, fmt.Errorf("nobody holds a lock of kind %s: %w", kind, ErrUnsupported))
	default:
		return wrap("break", key, fmt.Errorf("there is no kind of lock %q: give KindMutex, KindRWMutex, "+
			"KindSemaphore or KindElection", kind))
	}
	breaker, ok := c.d.(driver.Breaker)
	if !ok {
		reason, _ := c.traits.Lacking(driver.Breaking)
		return wrap("break", key, unsupported(c.traits, reason))
	}
	return wrap("break", key, c.asking(ctx, func(ctx context.Context) error { return breaker.Break(ctx, key, token) }))
}
