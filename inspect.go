package interlock

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"unicode/utf8"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/shell"
)

// What operators do: list locks, look at one, break one; and what the engine can do.

// List yields the locks whose names start with prefix and that are held or waited for, as the engine sees them, in no
// promised order. It is not a snapshot of all, but each LockInfo is consistent in itself. A lock that cannot be read,
// for instance because another program uses its key, has LockInfo.Unreadable set. An error ends the sequence; engines
// that cannot list yield ErrUnsupported.
//
// The engine does not know goroutines that wait behind another of their own process. A lock that was passed on inside a
// process shows the owner of its last renewal. It costs the engine the more, the more locks it holds; on Redis it scans
// all keys.
func (c *Client) List(ctx context.Context, prefix string) iter.Seq2[LockInfo, error] {
	s := c.in()
	return func(yield func(LockInfo, error) bool) {
		if err := mayInspect(ctx, s, prefix); err != nil {
			yield(LockInfo{}, err)
			return
		}
		err := s.Asking(ctx, func(ctx context.Context) error {
			for info, err := range s.Driver.(driver.Inspector).Locks(ctx, prefix) {
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
			yield(LockInfo{}, shell.Wrap("list", driver.Key{Name: prefix}, err))
		}
	}
}

// mayInspect says why List cannot ask the engine, or returns nil.
func mayInspect(ctx context.Context, c *shell.Client, prefix string) error {
	if err := shell.CheckCall(c.CheckMade(), ctx); err != nil {
		return err
	}
	if len(prefix) > shell.MaxNameBytes || !utf8.ValidString(prefix) {
		return fmt.Errorf("interlock: the prefix must be at most %d bytes of valid UTF-8", shell.MaxNameBytes)
	}
	if err := c.CheckOpen(); err != nil {
		return err
	}
	if _, ok := c.Driver.(driver.Inspector); ok {
		return nil
	}
	reason, _ := c.Traits.Lacking(driver.Holders)
	return fmt.Errorf("interlock: list %q: %w", prefix, core.Unsupported(c.Traits, reason))
}

// Break takes the lock from its holder, who learns of it as a loss (LostBroken), and gives it to the next in line. It
// does so only while token is the holder's token, or one of its block under local passes: look it up with List. So a
// Break that comes late never hits a later holder.
//
// On a free lock it returns ErrNotHeld. If the token is not a current one it returns a *HeldError with the one that is.
// Latches and conditions have no holder: ErrUnsupported, as on engines that cannot break.
//
// The holder may still be working. Break is for operators who know that it is not, or that the resource checks a fence.
func (c *Client) Break(ctx context.Context, kind Kind, name string, token uint64) error {
	s := c.in()
	key := driver.Key{Kind: kind, Name: name}
	if err := shell.CheckCall(s.CheckMade(), ctx); err != nil {
		return err
	}
	if err := shell.ValidateName("name of the lock", name); err != nil {
		return err
	}
	if err := s.CheckOpen(); err != nil {
		return err
	}
	switch kind {
	case KindMutex, KindRWMutex, KindSemaphore, KindElection:
	case KindLatch, KindCond:
		return shell.Wrap("break", key, fmt.Errorf("nobody holds a lock of kind %s: %w", kind, ErrUnsupported))
	default:
		return shell.Wrap("break", key, fmt.Errorf("there is no kind of lock %q: give KindMutex, KindRWMutex, "+
			"KindSemaphore or KindElection", kind))
	}
	breaker, ok := s.Driver.(driver.Breaker)
	if !ok {
		reason, _ := s.Traits.Lacking(driver.Breaking)
		return shell.Wrap("break", key, core.Unsupported(s.Traits, reason))
	}
	return shell.Wrap(
		"break",
		key,
		s.Asking(ctx, func(ctx context.Context) error { return breaker.Break(ctx, key, token) }),
	)
}

// Look tells who holds one lock and who waits for it, as the engine sees them. For a lock that nobody holds or waits
// for it returns kind and name and nothing else; that is no error. A kind that the engine does not know is
// ErrUnsupported. The engine knows as little as with [Client.List]. But for a lock that has passed on inside this
// client Look knows the holder and its label. It costs one round trip on nearly every engine, however many locks there
// are.
func (c *Client) Look(ctx context.Context, kind Kind, name string) (LockInfo, error) {
	s := c.in()
	key := driver.Key{Kind: kind, Name: name}
	none := LockInfo{Kind: kind, Name: name}
	if err := shell.CheckCall(s.CheckMade(), ctx); err != nil {
		return none, err
	}
	if err := shell.ValidateName("name of the lock", name); err != nil {
		return none, err
	}
	if err := s.CheckOpen(); err != nil {
		return none, err
	}
	if reason, lacks := s.Traits.LackingKind(kind); lacks {
		return none, shell.Wrap("look at", key, core.Unsupported(s.Traits, reason))
	}
	info := none
	err := s.Asking(ctx, func(ctx context.Context) (err error) {
		info, err = driver.Look(ctx, s.Driver, key)
		return err
	})
	if err == nil {
		s.Present(key, &info)
	}
	return info, shell.Wrap("look at", key, err)
}

// Traits describes the client's engine: its name, what ends a hold, which kinds of locks it has, and what it cannot do
// and why. It asks no engine and never changes; the slices are copies. A Client that was not made by Open or New has
// the zero Traits.
func (c *Client) Traits() driver.Traits {
	s := c.in()
	if s.CheckMade() != nil {
		return driver.Traits{}
	}
	t := s.Traits
	t.Kinds, t.Unsupported = slices.Clone(t.Kinds), slices.Clone(t.Unsupported)
	return t
}
