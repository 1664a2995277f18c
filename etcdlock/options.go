// The options of a driver. url.go reads them from a URL; start checks them before anything is asked.
//
// Every limit here is checked before the first request, so that a wrong option is an error of New or Open and not of
// some later Lock. The checks are the same for both ways to open a driver.

package etcdlock

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
)

// Options configures a driver. The zero value and nil mean the defaults.
type Options struct {
	// Prefix begins every key, so that several applications can share a cluster. All clients of one set of locks need
	// the same. The default is "interlock/".
	Prefix string

	// Session is the session's timeout: what this client holds becomes free that long after its last sign of life. etcd
	// counts whole seconds, so it is rounded up, and servers have a smallest one, some one and a half times their
	// election timeout. Too short, and an election or a pause of this process costs all locks; too long, and others
	// wait for the dead. The default is 30 s.
	Session time.Duration

	// RequestTimeout bounds a request whose context does not end before. With several endpoints, the first that is
	// asked is given up after an eighth of it, and the next one is asked. Too short, and a busy cluster seems to be out
	// of reach; too long, and callers wait for one that is. The default is 5 s.
	RequestTimeout time.Duration

	// Logger gets the losses of sessions. The default discards them.
	Logger *slog.Logger

	_ struct{}
}

const (
	defaultPrefix         = "interlock/"
	defaultSession        = 30 * time.Second
	defaultRequestTimeout = 5 * time.Second

	// etcd itself has no limit on a key's length below that of a request. These bounds only refuse what is surely a
	// mistake: a prefix is part of every key, and a timeout of days would keep locks of the dead for days.
	maxPrefix  = 128
	maxSession = 24 * time.Hour
)

// withDefaults returns a checked copy of o, with the defaults filled in. It accepts nil.
func (o *Options) withDefaults() (Options, error) {
	var c Options
	if o != nil {
		c = *o
	}
	c.Prefix = cmp.Or(c.Prefix, defaultPrefix)
	c.Session = cmp.Or(c.Session, defaultSession)
	c.RequestTimeout = cmp.Or(c.RequestTimeout, defaultRequestTimeout)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	switch {
	case len(c.Prefix) > maxPrefix:
		return c, fmt.Errorf("etcd: the prefix has %d bytes; at most %d are allowed", len(c.Prefix), maxPrefix)
	// A zero byte has a meaning of its own at the ends of etcd's ranges, and line breaks would tear what operators
	// read.
	case strings.ContainsAny(c.Prefix, "\x00\n\r"):
		return c, errors.New("etcd: the prefix must not have control characters")
	case c.Session < 0 || c.Session > maxSession:
		return c, fmt.Errorf("etcd: the session's timeout is %v; it must be positive and at most %v", c.Session,
			maxSession)
	case c.RequestTimeout < 10*time.Millisecond:
		return c, fmt.Errorf("etcd: the request timeout must be at least 10 ms, not %v", c.RequestTimeout)
	}
	return c, nil
}

// seconds is d as etcd counts a lease: in whole seconds, rounded up. It rounds up and never down: a session shorter
// than was asked for would end in a pause that its user has allowed for.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// pulseFor is how often the stream of watches is asked for a sign of life while somebody waits. A dead stream is
// replaced after four of them. It is a share of the session's timeout, so that a waiter learns of a dead stream well
// before its own session could end. The bounds keep it from being a load (100 ms) and from being late for long sessions
// (1 s).
func pulseFor(session time.Duration) time.Duration {
	return min(max(session/(2*silences), shortestPulse), longestPulse)
}

const shortestPulse, longestPulse = 100 * time.Millisecond, time.Second
