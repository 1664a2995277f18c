// Package compare measures what users compare engines by, for every engine in one run: what a lock costs, what it costs
// to be refused, who is woken by a release, and how long a lock stays taken whose holder is dead, cut off or stopped.
package compare

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/bench/engined"
	"github.com/interlock-go/interlock/bench/peer"
)

// Settings say how long and how often.
type Settings struct {
	Rounds  int           // of each fault
	Time    time.Duration // of each measurement of speed
	Lease   time.Duration // of the holders to which something happens, also the timeout of sessions
	Waiters int           // among which those are counted that a release wakes
	Dir     string        // where folders are made; "" is the system's for temporary files
	Say     func(text string)
}

// Cell is one measured number, or why there is none.
type Cell struct {
	Values []float64 // nanoseconds or numbers; the median counts
	Why    string    // why nothing was measured, or a remark about it
}

// Row is what was measured on one engine.
type Row struct {
	Engine string // as in a URL, without servers "mem" and "file"
	Label  string
	Server string // product and version; "" without a server

	Alone               Cell // an acquisition and its release by one whom nobody disturbs
	Handoff, HandoffHi  Cell // p50 and p99
	Refused, RoundTrips Cell // a try at a held lock: time, and how often the client sent something and waited
	Woken               Cell // waiters that a release wakes

	Killed            Cell // until the lock is free after its holder's kill -9
	Cut, CutTold      Cell // after its connection is cut, and until the holder knows
	Stopped, ContTold Cell // after its process is stopped, and from its going on until it knows
}

// subject is an engine that is measured.
type subject struct {
	Settings
	engine string
	label  string
	peer   string // the one of workload
	dir    string
	server *engined.Server // nil without
}

// Engines returns all, in the order of tables.
func Engines() []string { return append([]string{"mem", "file"}, engined.All()...) }

var labels = map[string]string{
	"mem": "memory", "file": "file", engined.Redis: "Redis", engined.Redlock: "Redlock, five Redis",
	engined.ZK: "ZooKeeper", engined.Etcd: "etcd",
	engined.MySQL: "MySQL", engined.Postgres: "PostgreSQL",
}

// Run measures the engines given, one after the other.
func Run(ctx context.Context, engines []string, s Settings) ([]Row, error) {
	var rows []Row
	for _, engine := range engines {
		s.Say(labels[engine])
		row, err := one(ctx, engine, s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", engine, err)
		}
		rows = append(rows, *row)
	}
	return rows, nil
}

func one(ctx context.Context, engine string, s Settings) (row *Row, err error) {
	sub := &subject{Settings: s, engine: engine, label: labels[engine], peer: "interlock-" + engine}
	if sub.dir, err = os.MkdirTemp(s.Dir, "interlock-compare-"); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(sub.dir)) }()
	row = &Row{Engine: engine, Label: sub.label}
	if engine != "mem" && engine != "file" {
		if sub.server, err = engined.Start(ctx, engine); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, sub.server.Close()) }()
		row.Server = sub.server.Version
	}
	for _, step := range []func(context.Context, *Row) error{sub.speed, sub.refusal, sub.wakeups, sub.faults} {
		if err := step(ctx, row); err != nil {
			return nil, err
		}
	}
	return row, nil
}

// addr is that of the server, or "" without one.
func (s *subject) addr() string {
	if s.server == nil {
		return ""
	}
	return s.server.Addr
}

// url names the engine, whose server is reached at addr.
func (s *subject) url(addr string) string {
	switch s.engine {
	case "mem":
		return "mem://compare"
	case "file":
		return "file://" + s.dir
	default:
		return peer.URL(s.engine, addr)
	}
}

// open returns a client; a lease of 0 is the default.
func (s *subject) open(ctx context.Context, addr string, lease time.Duration) (*interlock.Client, error) {
	return interlock.Open(ctx, s.url(addr), &interlock.Options{Lease: lease})
}

// isNone says why something was not measured.
func isNone(why string) Cell { return Cell{Why: why} }

func (c *Cell) add(d time.Duration) { c.Values = append(c.Values, float64(d)) }
