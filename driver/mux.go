package driver

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Which engine a URL opens. url.go reads the URL, params.go its query.

// Config is what the portable layer tells an engine that it opens by URL.
type Config struct {
	Lease  time.Duration // what a Sessions engine asks for as its session's timeout
	Client string        // the client's name as operators see it
	Logger *slog.Logger  // never nil
	_      struct{}
}

// Opener opens the engine at u. It must refuse query keys that it does not know (see [Params]), and its errors must not
// show u's password.
type Opener func(ctx context.Context, u *URL, c Config) (Driver, error)

// Mux finds the engine for a URL by its scheme. The zero value is empty and ready for use; it must not be copied.
type Mux struct {
	mu      sync.RWMutex // guards schemes; nothing is called while it is held
	schemes map[string]Opener
}

// DefaultMux is where engines register themselves when their package is imported. It is interlock's only global
// variable (docs/rationale.md, The one global).
var DefaultMux = new(Mux)

// Register makes open answer for scheme. It panics if the scheme is taken: then two packages claim one engine.
func (m *Mux) Register(scheme string, open Opener) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.schemes == nil {
		m.schemes = make(map[string]Opener)
	}
	if _, taken := m.schemes[scheme]; taken {
		panic(fmt.Sprintf("interlock: the URL scheme %q is registered twice", scheme))
	}
	m.schemes[scheme] = open
}

// Schemes returns the registered schemes in alphabetical order.
func (m *Mux) Schemes() []string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return slices.Sorted(maps.Keys(m.schemes))
}

// Open opens the engine that raw names. If no engine is registered for the scheme, the error names the package to
// import. ctx bounds the opening, as the engine's Opener says.
func (m *Mux) Open(ctx context.Context, raw string, c Config) (Driver, error) {
	u, err := ParseURL(raw)
	if err != nil {
		return nil, err
	}
	m.mu.RLock()
	open := m.schemes[u.Scheme]
	m.mu.RUnlock()
	if open == nil {
		return nil, m.unknown(u.Scheme)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return open(ctx, u, c)
}

// packages are the import paths behind interlock's own schemes, for the error after a missing blank import.
var packages = map[string]string{
	"mem": "memlock", "file": "filelock",
	"redis": "redislock", "rediss": "redislock", "redis+sentinel": "redislock", "redis+cluster": "redislock",
	"redlock": "redislock/redlock", "zk": "zklock", "etcd": "etcdlock", "mysql": "mysqllock", "postgres": "pglock",
}

// unknown says what to import for scheme, or which schemes there are.
func (m *Mux) unknown(scheme string) error {
	if pkg, ours := packages[scheme]; ours {
		return fmt.Errorf(
			"no engine for %s:// URLs is linked in: add import _ \"github.com/interlock-go/interlock/%s\"", scheme, pkg)
	}
	known := m.Schemes()
	if len(known) == 0 {
		return fmt.Errorf("unknown URL scheme %q: no engine is linked in", scheme)
	}
	return fmt.Errorf("unknown URL scheme %q: the engines linked in answer to %s", scheme, strings.Join(known, ", "))
}
