// Package engined starts the servers of an engine for a run: those of the test kit (internal/servers), on a stage of
// its own for each engine. It also counts what the clients of a Redis send, and who waits in a database.
package engined

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/internal/servers"
)

// The engines whose servers this package starts.
const (
	Redis    = "redis"
	ZK       = "zk"
	Etcd     = "etcd"
	MySQL    = "mysql"
	Postgres = "postgres"
	Redlock  = "redlock" // five servers of Redis
)

// redlockNodes is how many servers Redlock has.
const redlockNodes = 5

// Database is the one in which peers keep their tables on MySQL.
const Database = servers.MariaDBDatabase

// connections is what the SQL servers allow: a thousand clients with a few each.
const connections = "4000"

// clients is more than a herd on Redis needs with several connections for each client. A server whose limit of open
// files is lower takes less.
const clients = "15000"

// ErrMissing says that a server is not installed.
var ErrMissing = servers.ErrMissing

// Server is one that runs.
type Server struct {
	Engine  string
	Addr    string // host:port; of Redlock several, with commas between them
	Version string // product and version
	PIDs    []int  // its processes, where the system tells; they may have started others

	stage *servers.Stage
}

// All returns the engines, in the order of docs/comparison.md.
func All() []string { return []string{Redis, Redlock, ZK, Etcd, MySQL, Postgres} }

// Start starts the server of an engine, which waits for the disk before it says that something is written, where it
// writes at all. On Linux it ends at the latest with this process. The server's processes are those that this one
// starts meanwhile: who wants to know them starts nothing else at the same time.
func Start(ctx context.Context, engine string) (*Server, error) {
	if !slices.Contains(All(), engine) {
		return nil, fmt.Errorf("there is no engine %q with a server; there are %s", engine, strings.Join(All(), ", "))
	}
	stage, err := servers.NewStage()
	if err != nil {
		return nil, err
	}
	s := &Server{Engine: engine, stage: stage}
	before := ownChildren()
	err = stage.Play(func(t testing.TB) { s.Addr = start(t, engine) })
	s.PIDs = slices.DeleteFunc(ownChildren(), func(pid int) bool { return slices.Contains(before, pid) })
	if err == nil {
		s.Version, err = version(ctx, engine, s.Addr)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// start returns the server's address.
func start(t testing.TB, engine string) string {
	switch engine {
	case Redis:
		return servers.RedisServer(t, &servers.RedisOptions{Config: map[string]string{"maxclients": clients}}).Addr()
	case Redlock:
		var addrs []string
		for range redlockNodes {
			addrs = append(addrs, servers.RedisServer(t, nil).Addr())
		}
		return strings.Join(addrs, ",")
	case ZK:
		return servers.ZooKeeperServer(t, &servers.ZooKeeperOptions{
			Properties: map[string]string{"zookeeper.forceSync": "yes"},
		}).Addr()
	case Etcd:
		return servers.Etcd(t)
	case MySQL:
		return servers.MariaDBServer(t,
			&servers.MariaDBOptions{Args: []string{"--max-connections=" + connections}}).Addr()
	default:
		// A thousand sessions that wait for one bare lock keep those that begin from the processors for minutes.
		return servers.PostgresServer(t, &servers.PostgresOptions{
			Config: map[string]string{"fsync": "on", "max_connections": connections, "authentication_timeout": "10min"},
		}).Addr()
	}
}

// Proxies stand before the servers of an engine, one before each.
type Proxies []*servers.Proxy

// Proxies starts a proxy before each server. They end with s.
func (s *Server) Proxies() (Proxies, error) {
	var all Proxies
	for addr := range strings.SplitSeq(s.Addr, ",") {
		p, err := s.proxy(addr)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

func (s *Server) proxy(addr string) (p *servers.Proxy, err error) {
	const attempts = 5 // another process may take the port that was found free
	for range attempts {
		if err = s.stage.Play(func(t testing.TB) { p = servers.NewProxy(t, addr) }); err == nil {
			return p, nil
		}
	}
	return nil, err
}

// Addr is where clients reach the servers through them.
func (all Proxies) Addr() string {
	addrs := make([]string, len(all))
	for i, p := range all {
		addrs[i] = p.Addr()
	}
	return strings.Join(addrs, ",")
}

// BlackHole lets nothing pass any more, and tells neither side.
func (all Proxies) BlackHole() {
	for _, p := range all {
		p.BlackHole(servers.BothWays)
	}
}

// Close kills the server and removes its data.
func (s *Server) Close() error { return s.stage.Close() }
