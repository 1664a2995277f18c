package peer

import (
	"context"
	"path/filepath"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/bench/engined"
	_ "github.com/interlock-go/interlock/etcdlock"          // registers the scheme
	_ "github.com/interlock-go/interlock/mysqllock"         // registers the scheme
	_ "github.com/interlock-go/interlock/pglock"            // registers the scheme
	_ "github.com/interlock-go/interlock/redislock/redlock" // registers the scheme
	_ "github.com/interlock-go/interlock/zklock"            // registers the scheme
)

// interlockOn is interlock on the server of an engine.
func interlockOn(engine string) Spec {
	return Spec{
		Name:   "interlock-" + engine,
		Does:   "interlock on " + lockOf[engine] + ", default options",
		Engine: engine,
		Open: func(ctx context.Context, at Place) (Peer, error) {
			c, err := interlock.Open(ctx, URL(engine, at.Server), &interlock.Options{Lease: at.Lease})
			if err != nil {
				return nil, err
			}
			return &locks{client: c, space: at.run()}, nil
		},
	}
}

// lockOf are the packages of the engines.
var lockOf = map[string]string{
	engined.ZK: "zklock", engined.Etcd: "etcdlock", engined.MySQL: "mysqllock", engined.Postgres: "pglock",
	engined.Redlock: "redlock",
}

// URL is how interlock names the server of an engine.
func URL(engine, addr string) string {
	switch engine {
	case engined.MySQL:
		return "mysql://root@" + addr + "/" + engined.Database
	case engined.Postgres:
		return engined.PostgresURL(addr)
	default:
		return engine + "://" + addr
	}
}

// run is what names of locks on a server begin with, other ones in each run: servers other than Redis are not emptied, and
// some keep for a while what a killed client has left.
func (at *Place) run() string { return filepath.Base(at.Dir) + "-" }
