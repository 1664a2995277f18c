package engined

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// Meter counts what clients have sent to a server. It is safe for concurrent use.
//
// Redis 7.0 tells of no such number: its totals, as total_commands_processed and commandstats, count each command that
// a script runs like one that a client sent. But of each command the server says whether scripts may run it. So what
// counts here are the commands that none may run, EVALSHA, BLPOP and SUBSCRIBE among them, and those of which the
// caller says that the clients at hand send them themselves and that none of their scripts runs them.
//
// A nil Meter counts nothing: it is that of a run without a Redis.
type Meter struct {
	client *goredis.Client
	sent   []string // what clients send of what scripts might run

	mu   sync.Mutex
	only map[string]bool // of each command that was seen: whether it comes from clients only
}

// Count is what clients have sent since the server's start.
type Count struct {
	Commands int64 // without pings
	Pings    int64 // by which libraries find out whether a connection is alive

	Scripts time.Duration // how long the server ran scripts, with the commands in them
}

// Sub returns what came between b and c.
func (c Count) Sub(b Count) Count {
	return Count{Commands: c.Commands - b.Commands, Pings: c.Pings - b.Pings, Scripts: c.Scripts - b.Scripts}
}

// NewMeter returns a meter for the server at addr, on a connection of its own, of which it counts nothing after its
// first call of Count; without an address the meter is nil. sent are further commands that the clients send, in lower
// case.
func NewMeter(addr string, sent []string) *Meter {
	if addr == "" {
		return nil
	}
	return &Meter{
		// One connection, which is opened once: opening one is made of commands.
		client: goredis.NewClient(&goredis.Options{Addr: addr, PoolSize: 1, MaxRetries: -1}),
		sent:   sent,
		only:   map[string]bool{},
	}
}

// Close closes the connection.
func (m *Meter) Close() error {
	if m == nil {
		return nil
	}
	return m.client.Close()
}

// Empty removes all keys.
func (m *Meter) Empty(ctx context.Context) error { return m.client.FlushAll(ctx).Err() }

// Process returns the server's process.
func (m *Meter) Process(ctx context.Context) (pid int, err error) {
	info, err := m.client.InfoMap(ctx, "server").Result()
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(info["Server"]["process_id"])
}

// Memory returns how many bytes the server uses; zero without one.
func (m *Meter) Memory(ctx context.Context) (float64, error) {
	if m == nil {
		return 0, nil
	}
	info, err := m.client.InfoMap(ctx, "memory").Result()
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(info["Memory"]["used_memory"], 64)
}

// Count asks the server.
func (m *Meter) Count(ctx context.Context) (Count, error) {
	if m == nil {
		return Count{}, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var c Count
	text, err := m.client.Info(ctx, "commandstats").Result()
	if err != nil {
		return c, err
	}
	for line := range strings.Lines(text) {
		name, calls, took, ok := parse(line)
		if !ok {
			continue
		}
		if name == "eval" || name == "evalsha" {
			c.Scripts += took
		}
		if name == "ping" {
			c.Pings += calls
			continue
		}
		counts, err := m.counts(ctx, name)
		if err != nil {
			return c, err
		}
		if counts {
			c.Commands += calls
		}
	}
	return c, nil
}

// parse reads a line such as cmdstat_get:calls=3,usec=5,...
func parse(line string) (name string, calls int64, took time.Duration, ok bool) {
	head, rest, _ := strings.Cut(line, ":")
	name, ok = strings.CutPrefix(head, "cmdstat_")
	if !ok {
		return "", 0, 0, false
	}
	var micros int64
	n, _ := fmt.Sscanf(rest, "calls=%d,usec=%d", &calls, &micros)
	return name, calls, time.Duration(micros) * time.Microsecond, n == 2
}

// counts reports whether clients send the command and scripts do not.
func (m *Meter) counts(ctx context.Context, name string) (bool, error) {
	if only, known := m.only[name]; known {
		return only, nil
	}
	only := slices.Contains(m.sent, name)
	if !only {
		info, err := m.client.Do(ctx, "COMMAND", "INFO", name).Slice()
		if err != nil {
			return false, fmt.Errorf("asking about the command %s: %w", name, err)
		}
		only = forbidden(info)
	}
	m.only[name] = only
	return only, nil
}

// forbidden reads the reply of COMMAND INFO: whether its third field, the flags, says that no script may run the
// command.
func forbidden(info []any) bool {
	if len(info) == 0 {
		return false
	}
	fields, _ := info[0].([]any) // nil for what is no command any more
	if len(fields) < 3 {
		return false
	}
	flags, _ := fields[2].([]any)
	return slices.Contains(flags, any("noscript"))
}
