package interlock

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
)

// What a careless caller may hold: a value that nobody has made, a copy of one, a nil context. Methods that return an
// error say so; the others panic with the same words. Every exported method begins with one of these checks.

var (
	errNilContext   = errors.New("interlock: nil Context")
	errNoClient     = errors.New("interlock: Client was not made by Open or New")
	errNoMutex      = errors.New("interlock: Mutex was not made by Client.Mutex")
	errNoRWMutex    = errors.New("interlock: RWMutex was not made by Client.RWMutex")
	errNoSemaphore  = errors.New("interlock: Semaphore was not made by Client.Semaphore")
	errNoLatch      = errors.New("interlock: Latch was not made by Client.Latch")
	errNoCond       = errors.New("interlock: Cond was not made by Client.Cond")
	errNoElection   = errors.New("interlock: Election was not made by Client.Election")
	errNoMulti      = errors.New("interlock: Multi was not made by Client.Multi or MultiOf")
	errNoLease      = errors.New("interlock: Lease was not made by Lock")
	errNoMultiLease = errors.New("interlock: MultiLease was not made by Multi.Lock")
)

// checkContext returns an error for a nil context.
func checkContext(ctx context.Context) error {
	if ctx == nil {
		return errNilContext
	}
	return nil
}

// panicOn panics with err, for methods that have no error to return.
func panicOn(err error) {
	if err != nil {
		panic(err.Error())
	}
}

// checkMade says why c cannot be used, or returns nil. The other types have a method of the same name.
func (c *Client) checkMade() error {
	if c == nil || c.d == nil {
		return errNoClient
	}
	return nil
}

// checkLock also returns what was wrong with the name or the options.
func checkLock(m *core.Lock) error {
	if m == nil || m.Terms == nil {
		return errNoMutex
	}
	if m.Terms.Err != nil {
		return m.Terms.Err
	}
	return clientOfLock(m).checkMade()
}

// modeMutex returns the lock in that mode, or one whose first call fails if m was not made by a client.
func (m *RWMutex) modeMutex(mode driver.Mode) *core.Lock {
	if m == nil || m.modes[mode].Terms == nil {
		return &core.Lock{Terms: &core.Terms{Err: errNoRWMutex}}
	}
	return &m.modes[mode]
}

func (s *Semaphore) checkMade() error {
	if s == nil || s.one.Load() == nil {
		return errNoSemaphore
	}
	return nil
}

func (l *Latch) checkMade() error {
	if l == nil || l.c == nil && l.err == nil {
		return errNoLatch
	}
	return l.err
}

func (c *Cond) checkMade() error {
	if c == nil || c.m == nil && c.err == nil {
		return errNoCond
	}
	return c.err
}

func (e *Election) checkMade() error {
	if e == nil || e.p == nil {
		return errNoElection
	}
	return e.p.Err
}

func (m *Multi) checkMade() error {
	if m == nil || len(m.order) == 0 && m.err == nil {
		return errNoMulti
	}
	return m.err
}

func (l *MultiLease) checkMade() error {
	if l == nil || len(l.leases) == 0 {
		return errNoMultiLease
	}
	return nil
}

// checkMade also refuses a copy: the end of the hold would not reach it, and it would go on saying that it is held.
func (l *Lease) checkMade() error {
	h := l.hold()

	switch {
	case h == nil || h.Lock == nil:
		return errNoLease
	case h.IsCopy():
		return fmt.Errorf("interlock: %s %q: the Lease is a copy: use the one that Lock returned", h.Lock.Key().Kind,
			h.Lock.Key().Name)
	}
	return nil
}

// checkCall returns made, the error of the receiver, or else the error of a nil context.
func checkCall(made error, ctx context.Context) error { //nolint:revive // what is wrong with the receiver is said first
	if made != nil {
		return made
	}
	return checkContext(ctx)
}

// checkOpen returns ErrClosed once Close has begun.
func (c *Client) checkOpen() error {
	c.lock()
	defer c.unlock()
	if c.core.Closed {
		return fmt.Errorf("interlock: %w", ErrClosed)
	}
	return nil
}
