package servers

import (
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"
)

// Redis starts a Redis, or a Valkey where there is no Redis, and returns its host:port. It has no password and writes
// nothing to disk.
func Redis(t testing.TB) string {
	t.Helper()
	return RedisServer(t, nil).Addr()
}

// RedisOptions say what differs from a Redis without password that writes nothing to disk. In a replication, a Sentinel
// deployment or a Cluster they apply to each node.
type RedisOptions struct {
	// Password is the one of the user "default".
	Password string

	// Users are further users, or the one named "default", as in `bob on >secret ~app:* &* +@all`. If there are any,
	// the package adds one for itself.
	Users []string

	// TLS makes the server speak TLS only, with a certificate of an authority made for the test.
	TLS bool

	// Config holds directives of redis.conf with their values as they stand there, as in "maxmemory": "1mb".
	Config map[string]string

	// Clock, if not nil, is the wall clock that the servers see.
	Clock *Clock

	// Clocks are the wall clocks of the single servers, in the order of Nodes, of which Sentinels are none; nil is the
	// right time. Servers beyond the list see Clock.
	Clocks []*Clock

	// Network, if not nil, is where the servers are, each a member of its own.
	Network *Network

	// Disk, if not nil, is where the servers keep their data.
	Disk *Disk

	_ struct{}
}

// RedisNode is one Redis that was started, alone or as part of something larger, or one Sentinel.
type RedisNode struct {
	*Server
	user, password string // as whom the package talks to it
	certs          *certificates
}

// RedisServer starts a Redis as o says; nil is the zero value. With "appendonly": "yes" and "appendfsync":
// "always" in its Config it finds its data again after [Server.Restart], otherwise it comes back empty, or without
// the last it has answered.
func RedisServer(t testing.TB, o *RedisOptions) *RedisNode {
	t.Helper()
	return newRedisMaker(t, o).start(nil)
}

// redisMaker starts the nodes of one set-up.
type redisMaker struct {
	t     testing.TB
	opts  RedisOptions
	certs *certificates // nil without TLS; shared, since the nodes talk to each other
	made  int           // how many have been started
}

func newRedisMaker(t testing.TB, o *RedisOptions) *redisMaker {
	t.Helper()
	m := &redisMaker{t: t}
	if o != nil {
		m.opts = *o
	}
	if m.opts.TLS {
		m.certs = newCertificates(t)
	}
	return m
}

// start starts a Redis with further settings, over which the test's own win.
func (m *redisMaker) start(further redisSettings) *RedisNode {
	m.t.Helper()
	n := m.node()
	spec := n.redisSpec("redis")
	spec.Env, spec.At, spec.Disk = m.nextClock().env(), m.join(), m.opts.Disk
	spec.Args = func(Site) []string { return []string{redisConf} }
	spec.Prepare = func(_ context.Context, s Site) error {
		set := m.opts.settings(s, m.certs)
		if n.password != "" { // what a replica shows to its primary
			set["masteruser"], set["masterauth"] = n.user, strconv.Quote(n.password)
		}
		maps.Copy(set, further)
		maps.Copy(set, m.opts.Config)
		return set.write(s.Dir, m.users()...)
	}
	n.Server = Start(m.t, spec)
	return n
}

// nextClock returns that of the next server, or nil if it sees the right time.
func (m *redisMaker) nextClock() *Clock {
	m.made++
	if m.made <= len(m.opts.Clocks) {
		return m.opts.Clocks[m.made-1]
	}
	return m.opts.Clock
}

// join returns a place for the next server, or nil if there is no network of their own.
func (m *redisMaker) join() *Member {
	m.t.Helper()
	if m.opts.Network == nil {
		return nil
	}
	return m.opts.Network.Join(m.t)
}

// node returns a node that is not started yet.
func (m *redisMaker) node() *RedisNode {
	n := &RedisNode{certs: m.certs}
	if len(m.opts.Users) > 0 {
		n.user, n.password = adminUser, adminPassword
	} else if m.opts.Password != "" {
		n.user, n.password = "default", m.opts.Password
	}
	return n
}

func (m *redisMaker) users() []string {
	if len(m.opts.Users) == 0 {
		return nil
	}
	lines := []string{"user " + adminUser + " on >" + adminPassword + " ~* &* +@all"}
	for _, user := range m.opts.Users {
		lines = append(lines, "user "+user)
	}
	return lines
}

func (n *RedisNode) redisSpec(name string) Spec {
	return Spec{
		Name:     name,
		Binaries: []string{"redis-server", "valkey-server"},
		Install:  "redis-server (Debian, Ubuntu), redis (Homebrew) or valkey",
		Ready: func(ctx context.Context, s Site) error {
			// While the server loads its data it answers with an error.
			answer, err := n.do(ctx, s.addr(0), "PING")
			if err == nil && answer != "PONG" {
				err = fmt.Errorf("PING is answered %q", answer)
			}
			return err
		},
	}
}

// TLS returns how a client connects, or nil if the server does not speak TLS. The certificate in it is needed only with
// "tls-auth-clients": "yes".
func (n *RedisNode) TLS() *tls.Config { return n.certs.config() }

// CAFile returns the path of the authority's certificate in PEM, for programs that are not given a [tls.Config], or "".
func (n *RedisNode) CAFile() string {
	ca, _, _ := n.certs.files()
	return ca
}

// Dial connects to the server as one who may do everything.
func (n *RedisNode) Dial(ctx context.Context) (*RedisConn, error) { return n.dial(ctx, n.Addr()) }

// Do sends one command on a connection of its own, as one who may do everything, and returns its reply as
// [RedisConn.Do] does.
func (n *RedisNode) Do(ctx context.Context, args ...string) (any, error) {
	return n.do(ctx, n.Addr(), args...)
}

// Info returns the fields of a section of INFO.
func (n *RedisNode) Info(ctx context.Context, section string) (map[string]string, error) {
	reply, err := n.Do(ctx, "INFO", section)
	if err != nil {
		return nil, err
	}
	return redisFields(reply), nil
}

// redisFields reads the lines "name:value" of INFO and CLUSTER INFO.
func redisFields(reply any) map[string]string {
	text, _ := reply.(string)
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

func (n *RedisNode) dial(ctx context.Context, addr string) (*RedisConn, error) {
	c, err := DialRedis(ctx, addr, n.TLS())
	if err != nil {
		return nil, err
	}
	if n.password != "" {
		if _, err := c.Do(ctx, "AUTH", n.user, n.password); err != nil {
			_ = c.Close()
			return nil, err
		}
	}
	return c, nil
}

func (n *RedisNode) do(ctx context.Context, addr string, args ...string) (any, error) {
	c, err := n.dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.Do(ctx, args...)
}
