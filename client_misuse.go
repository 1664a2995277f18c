package interlock

import (
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
)

// What a careless caller may hold: a value that nobody has made, a copy of one, a nil context. Methods that return an
// error say so; the others panic with the same words. Every exported method begins with one of these checks.

var (
	errNoRWMutex    = errors.New("interlock: RWMutex was not made by Client.RWMutex")
	errNoSemaphore  = errors.New("interlock: Semaphore was not made by Client.Semaphore")
	errNoLatch      = errors.New("interlock: Latch was not made by Client.Latch")
	errNoCond       = errors.New("interlock: Cond was not made by Client.Cond")
	errNoElection   = errors.New("interlock: Election was not made by Client.Election")
	errNoMulti      = errors.New("interlock: Multi was not made by Client.Multi or MultiOf")
	errNoLease      = errors.New("interlock: Lease was not made by Lock")
	errNoMultiLease = errors.New("interlock: MultiLease was not made by Multi.Lock")
)

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
