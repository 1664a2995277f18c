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
	s := c.in()
	if s.CheckMade() != nil {
		return driver.Traits{}
	}
	t := s.Machine.Traits
	t.Kinds, t.Unsupported = slices.Clone(t.Kinds), slices.Clone(t.Unsupported)
	return t
}
