package interlock

import (
	"slices"

	"github.com/interlock-go/interlock/driver"
)

// Traits describes the client's engine: its name, what ends a hold, which kinds of locks it has, and what it cannot do
// and why. It asks nobody. A Client that was not made by Open or New has none.
func (c *Client) Traits() driver.Traits {
	if c.made() != nil {
		return driver.Traits{}
	}
	t := c.traits
	t.Kinds, t.Unsupported = slices.Clone(t.Kinds), slices.Clone(t.Unsupported)
	return t
}
