// The options of a driver. driver.go and connect.go check them before they dial; url.go reads them from a URL.

package redislock

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/redislock/internal/word"
)

// Options configures a driver. The zero value and nil mean the defaults. New copies them, so later changes have no
// effect.
type Options struct {
	// Prefix begins every key and channel, so that several applications can share a server. All clients of one set of
	// locks need the same: with another prefix they use other locks. It has at most 128 bytes, and no spaces, control
	// characters or braces. The default is "interlock:".
	Prefix string

	// Replicas is how many replicas must acknowledge an acquisition or a renewal before it counts. Give the number of
	// all that are configured: with fewer, the promoted one may be the one that was not waited for. While fewer are
	// connected, no lock is granted and none is renewed. It costs a round trip from the primary to the replicas for
	// each acquisition and renewal, and one more after a wait. Each acquisition that runs at the same time needs a
	// connection. The default is 0: a failover can lose locks that were granted just before.
	Replicas int

	// ReplicaTimeout bounds the wait for Replicas, in the server. A grant that too few have acknowledged by then is
	// undone. Too short, and one slow replica fails acquisitions; too long, and a missing one delays the error. The
	// default is 1 s.
	ReplicaTimeout time.Duration

	// Check says what to do with the findings of the start-up check. The default is CheckWarn.
	Check CheckPolicy

	// Logger gets the findings of the start-up check. The default discards them.
	Logger *slog.Logger

	_ struct{}
}

// CheckPolicy says what New does with a server that is not set up for locks.
type CheckPolicy = enginekit.CheckPolicy

const (
	// CheckWarn logs findings.
	CheckWarn CheckPolicy = enginekit.CheckWarn
	// CheckRefuse makes New fail if a finding says that locks would not keep their guarantees.
	CheckRefuse CheckPolicy = enginekit.CheckRefuse
	// CheckNone asks nothing.
	CheckNone CheckPolicy = enginekit.CheckNone
)

const (
	defaultPrefix         = "interlock:"
	defaultReplicaTimeout = time.Second
	maxPrefix             = 128
	maxReplicas           = 100
)

// withDefaults returns a checked copy of o, with the defaults filled in. It accepts nil.
func (o *Options) withDefaults() (Options, error) {
	var c Options
	if o != nil {
		c = *o
	}
	c.Prefix = cmp.Or(c.Prefix, defaultPrefix)
	c.ReplicaTimeout = cmp.Or(c.ReplicaTimeout, defaultReplicaTimeout)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	switch {
	case !word.Is(c.Prefix):
		return c, errors.New("redis: the prefix must not have spaces or control characters")
	case strings.ContainsAny(c.Prefix, "{}"):
		return c, errors.New("redis: the prefix must not have braces, which would put all locks into one slot")
	case len(c.Prefix) > maxPrefix:
		return c, fmt.Errorf("redis: the prefix has %d bytes; at most %d are allowed", len(c.Prefix), maxPrefix)
	case c.Replicas < 0 || c.Replicas > maxReplicas:
		return c, fmt.Errorf("redis: wait for 0 to %d replicas, not %d", maxReplicas, c.Replicas)
	case c.ReplicaTimeout < time.Millisecond:
		return c, fmt.Errorf("redis: the replica timeout must be at least 1 ms, not %v", c.ReplicaTimeout)
	case c.Check > CheckNone:
		return c, fmt.Errorf("redis: unknown check policy %d", c.Check)
	}
	return c, nil
}
