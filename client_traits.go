package interlock

import (
	"slices"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
)

// What a client's engine can do, for programs that choose by it.

// Traits describes the client's engine: its name, what ends a hold, which kinds of locks it has, and what it cannot do
// and why. It asks no engine and never changes; the slices are copies. A Client that was not made by Open or New has
// the zero Traits.
func (c *Client) Traits() driver.Traits {
	if c.checkMade() != nil {
		return driver.Traits{}
	}
	t := c.core.Traits
	t.Kinds, t.Unsupported = slices.Clone(t.Kinds), slices.Clone(t.Unsupported)
	return t
}

// coreOf returns the core, and nil of a nil Client.
func (c *Client) coreOf() *core.Machine {
	if c == nil {
		return nil
	}
	return &c.core
}

// clientOf returns the client whose core c is.
func clientOf(c *core.Machine) *Client {
	own, _ := c.Shell.(shell)
	return own.c
}

// clientOfLock returns the client of which m is a lock; nil if nobody has made m.
func clientOfLock(m *core.Lock) *Client {
	if m.Core == nil {
		return nil
	}
	return clientOf(m.Core)
}
