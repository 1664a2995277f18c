package peer

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/bench/engined"
	"github.com/interlock-go/interlock/driver"
	_ "github.com/interlock-go/interlock/etcdlock" // registers the scheme
	"github.com/interlock-go/interlock/filelock"
	"github.com/interlock-go/interlock/memlock"
	_ "github.com/interlock-go/interlock/mysqllock"         // registers the scheme
	_ "github.com/interlock-go/interlock/pglock"            // registers the scheme
	_ "github.com/interlock-go/interlock/redislock"         // registers the scheme
	_ "github.com/interlock-go/interlock/redislock/redlock" // registers the scheme
	_ "github.com/interlock-go/interlock/zklock"            // registers the scheme
)

func interlockFile() Spec {
	return Spec{
		Name: "interlock-file",
		Does: "interlock on filelock, default options: local queue, flock on a kept descriptor, the path checked, " +
			"the token written into the file",
		Open: func(_ context.Context, at Place) (Peer, error) {
			d, err := filelock.New(at.Dir, nil)
			if err != nil {
				return nil, err
			}
			return onDriver(d, interlock.Options{}, d.Close)
		},
	}
}

func interlockMem() Spec {
	return Spec{
		Name:  "interlock-mem",
		Does:  "interlock on memlock, default options: what the core costs, on an engine without system calls",
		Alone: true,
		Open: func(context.Context, Place) (Peer, error) {
			d := memlock.New(nil)
			return onDriver(d, interlock.Options{}, d.Close)
		},
	}
}

// interlockOn is interlock on the server of an engine.
func interlockOn(engine string) Spec {
	return Spec{
		Name:  "interlock-" + engine,
		Does:  "interlock on " + packageOf[engine] + ", default options",
		Redis: engine == engined.Redis, Engine: otherThanRedis(engine),
		Open: func(ctx context.Context, at Place) (Peer, error) {
			return openLocks(ctx, at, engine, interlock.Options{})
		},
	}
}

func interlockQueueOnRedis() Spec {
	return Spec{
		Name: "interlock-redis-queue",
		Does: "interlock on redislock, where a hold never passes on inside a process (LocalHandoffs: -1): every " +
			"hand-over is the server's",
		Redis: true,
		Open: func(ctx context.Context, at Place) (Peer, error) {
			return openLocks(ctx, at, engined.Redis, interlock.Options{LocalHandoffs: -1})
		},
	}
}

// packageOf are the packages of the engines.
var packageOf = map[string]string{
	engined.Redis: "redislock", engined.Redlock: "redlock", engined.ZK: "zklock", engined.Etcd: "etcdlock",
	engined.MySQL: "mysqllock", engined.Postgres: "pglock",
}

func otherThanRedis(engine string) string {
	if engine == engined.Redis {
		return ""
	}
	return engine
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

// run is what names of locks on a server begin with, other ones in each run: servers other than Redis are not emptied,
// and some keep for a while what a killed client has left.
func (at *Place) run() string { return filepath.Base(at.Dir) + "-" }

// locks is interlock's client on some engine, with the options that a user gets who sets none.
type locks struct {
	client *interlock.Client
	below  func() error // closes what is below the client; nil if the client has opened it itself
	space  string       // what the names of its locks begin with
}

func onDriver(d driver.Driver, options interlock.Options, below func() error) (Peer, error) {
	c, err := interlock.New(d, &options)
	if err != nil {
		return nil, errors.Join(err, below())
	}
	return &locks{client: c, below: below}, nil
}

func openLocks(ctx context.Context, at Place, engine string, options interlock.Options) (*locks, error) {
	addr, space := at.Server, at.run()
	if engine == engined.Redis { // which is emptied
		addr, space = at.Redis, ""
	}
	options.Lease = at.Lease
	c, err := interlock.Open(ctx, URL(engine, addr), &options)
	if err != nil {
		return nil, err
	}
	return &locks{client: c, space: space}, nil
}

// Worker returns a hold's place; all workers share the client, as goroutines of one program do.
func (l *locks) Worker(name string) (Worker, error) {
	return &lease{lock: l.client.Mutex(l.space+name, nil).Lock}, nil
}

// Hold takes a lock, which the client renews.
func (l *locks) Hold(ctx context.Context, name string) (Hold, error) {
	held, err := l.client.Lock(ctx, l.space+name)
	if err != nil {
		return nil, err
	}
	return keptLease{held}, nil
}

// Close closes the client and what is below it.
func (l *locks) Close() error {
	err := l.client.Close()
	if l.below != nil {
		err = errors.Join(err, l.below())
	}
	return err
}

// lease is one goroutine's hold.
type lease struct {
	lock func(ctx context.Context) (*interlock.Lease, error)
	held *interlock.Lease
}

// Lock acquires.
func (l *lease) Lock(ctx context.Context) (err error) {
	l.held, err = l.lock(ctx)
	return err
}

// Unlock is Lease.Unlock.
func (l *lease) Unlock(ctx context.Context) error { return l.held.Unlock(ctx) }

// keptLease is a lease that is held for long.
type keptLease struct{ held *interlock.Lease }

// Release is Lease.Unlock.
func (k keptLease) Release(ctx context.Context) error {
	err := k.held.Unlock(ctx)
	if errors.Is(err, interlock.ErrLost) {
		return ErrLost
	}
	return err
}
