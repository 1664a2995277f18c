package interlock

import (
	"slices"

	"github.com/interlock-go/interlock/driver"
)

// What a client's engine can do, for programs that choose by it.

// Traits describes the client's engine: its name, what ends a hold, which kinds of locks it has, and what it cannot do
// and why. It asks no engine and never changes; the slices are copies. A Client that was not made by Open or New has
// the zero Traits.
func (c *Client) Traits() driver.Traits {
	if c.checkMade() != nil {
		return driver.Traits{}
	}
	t := c.traits
	t.Kinds, t.Unsupported = slices.Clone(t.Kinds), slices.Clone(t.Unsupported)
	return t
}

// hasLeases reports whether each hold has a lease of its own, which renewals lengthen.
func (c *Client) hasLeases() bool { return c.traits.Lifetime == driver.Leases }

// hasSessions reports whether holds last as long as a session.
func (c *Client) hasSessions() bool { return c.traits.Lifetime == driver.Sessions }
