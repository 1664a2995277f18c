// The options of a driver. url.go reads them from a URL; each node gets what options.node makes of them.

package redlock

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/interlock-go/interlock/redislock"
	"github.com/interlock-go/interlock/redislock/internal/word"
	"github.com/redis/rueidis"
)

// Options configures a driver. The zero value and nil mean the defaults.
type Options struct {
	// Prefix begins every key and channel, as in [redislock.Options]. The default is "interlock:".
	Prefix string

	// LongestLease is the longest lease that may be asked for, and how long a node that has come back empty does not
	// vote. All clients of one set of nodes need the same value, or one of them may still trust a hold that a node has
	// forgotten. Too short, and leases are refused; too long, and a node that was restarted without its data is missing
	// for that time. The default is 1 minute, twice the default lease.
	LongestLease time.Duration

	// Former are the clients of the servers that decided before, while the servers are being changed: [New] is given
	// the current ones. A server of both has one client, which stands in both lists. See "Changing the servers" in the
	// documentation of the package. The default is none.
	Former []rueidis.Client

	// NodeTimeout is how long a node may be silent until it counts as unreachable. A node is waited for only while a
	// majority has not answered, so one hanging node does not cost this time. Too short, and a slow majority is taken
	// for dead; too long, and it takes as long to learn that there is none. The default is 1 s.
	NodeTimeout time.Duration

	// Check says what to do with the findings of a node's start-up check. With CheckRefuse such a node is not used. The
	// default is [redislock.CheckWarn].
	Check redislock.CheckPolicy

	// Logger gets the findings of the start-up checks, and which nodes cannot be used. The default discards them.
	Logger *slog.Logger

	_ struct{}
}

const (
	defaultPrefix       = "interlock:"
	defaultLongestLease = time.Minute
	defaultNodeTimeout  = time.Second
)

// withDefaults returns a checked copy of o, with the defaults filled in. It accepts nil.
func (o *Options) withDefaults() (Options, error) {
	var c Options
	if o != nil {
		c = *o
	}
	c.Prefix = cmp.Or(c.Prefix, defaultPrefix)
	c.LongestLease = cmp.Or(c.LongestLease, defaultLongestLease)
	c.NodeTimeout = cmp.Or(c.NodeTimeout, defaultNodeTimeout)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	switch {
	case !word.Is(c.Prefix) || strings.ContainsAny(c.Prefix, "{}"):
		return c, errors.New("redlock: the prefix must not have spaces, control characters or braces")
	case c.LongestLease < time.Millisecond:
		return c, fmt.Errorf("redlock: the longest lease must be at least 1 ms, not %v", c.LongestLease)
	case c.NodeTimeout < time.Millisecond:
		return c, fmt.Errorf("redlock: the node timeout must be at least 1 ms, not %v", c.NodeTimeout)
	}
	return c, nil
}

// former returns Former. It accepts nil.
func (o *Options) former() []rueidis.Client {
	if o == nil {
		return nil
	}
	return o.Former
}

// node returns the options of one node's driver. Replicas stay 0: a node is one server.
func (o *Options) node() *redislock.Options {
	return &redislock.Options{Prefix: o.Prefix, Check: o.Check, Logger: o.Logger}
}
