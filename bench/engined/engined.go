// Package engined starts the servers of the engines other than Redis for a run: those of the test kit
// (drivertest/servers), which is written for tests, so that a stage plays the test here.
package engined

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/drivertest/servers"
)

// The engines whose servers this package starts.
const (
	Redis    = "redis"
	ZK       = "zk"
	Etcd     = "etcd"
	MySQL    = "mysql"
	Postgres = "postgres"
)

// Database is the one in which peers keep their tables on MySQL.
const Database = servers.MariaDBDatabase

// connections is what the SQL servers allow: a thousand clients with a few each.
const connections = "4000"

// ErrMissing says that a server is not installed.
var ErrMissing = errors.New("a server is missing")

// Server is one that runs.
type Server struct {
	Engine  string
	Addr    string // host:port
	Version string // product and version

	stage *stage
}

// All returns the engines, in the order of tables.
func All() []string { return []string{Redis, ZK, Etcd, MySQL, Postgres} }

// Start starts the server of an engine, which waits for the disk before it says that something is written, where it
// writes at all. On Linux it ends at the latest with this process.
func Start(ctx context.Context, engine string) (*Server, error) {
	if !slices.Contains(All(), engine) {
		return nil, fmt.Errorf("there is no engine %q with a server; there are %s", engine, strings.Join(All(), ", "))
	}
	base, err := os.MkdirTemp("", "interlock-bench-"+engine+"-")
	if err != nil {
		return nil, err
	}
	s := &Server{Engine: engine, stage: &stage{base: base}}
	err = s.stage.play(func() { s.Addr = start(s.stage, engine) })
	if err == nil {
		s.Version, err = version(ctx, engine, s.Addr)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// start returns the server's address.
func start(t *stage, engine string) string {
	switch engine {
	case Redis:
		return servers.RedisServer(t, nil).Addr()
	case ZK:
		return servers.ZooKeeperServer(t, &servers.ZooKeeperOptions{
			Properties: map[string]string{"zookeeper.forceSync": "yes"},
		}).Addr()
	case Etcd:
		return servers.Etcd(t)
	case MySQL:
		return servers.MariaDBServer(t, &servers.MariaDBOptions{Args: []string{"--max-connections=" + connections}}).Addr()
	default:
		return servers.PostgresServer(t, &servers.PostgresOptions{
			Config: map[string]string{"fsync": "on", "max_connections": connections},
		}).Addr()
	}
}

// Proxy returns one that stands before the server and ends with it.
func (s *Server) Proxy() (p *servers.Proxy, err error) {
	const attempts = 5 // another process may take the port that was found free
	for range attempts {
		if err = s.stage.play(func() { p = servers.NewProxy(s.stage, s.Addr) }); err == nil {
			return p, nil
		}
	}
	return nil, err
}

// Close kills the server and removes its data.
func (s *Server) Close() error { return s.stage.end() }
