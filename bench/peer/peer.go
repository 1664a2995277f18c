// Package peer holds the ways to lock that are compared. To add one, write its file and name it in
// [All]; scenarios then pick it by its name.
//
// Names of locks are those of one run: a folder or a server is new to it, or the names are.
package peer

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/bench/engined"
)

// Place is where a peer finds the lock.
type Place struct {
	// Dir is a folder that all processes of a run share. It is empty at first and removed afterwards.
	Dir string

	// Redis is the host:port of the server, which is empty at first; "" for peers that need none.
	Redis string

	// Server is the host:port of the server of another engine, for peers that have one.
	Server string

	// Lease is that of the locks, where there are leases. Zero is what the peer gives to a user who sets none.
	Lease time.Duration
}

// LockName is that of the lock that everybody wants.
const LockName = "bench"

// Peer is one process's access to locks.
type Peer interface {
	// Worker returns the lock of that name as one goroutine uses it.
	Worker(name string) (Worker, error)
	// Close is called when no worker locks any more.
	Close() error
}

// Worker locks for one goroutine. Unlock ends what the last Lock took.
type Worker interface {
	Lock(ctx context.Context) error
	Unlock(ctx context.Context) error
}

// Keeper is a peer with which locks are held for long.
type Keeper interface {
	// Hold takes the lock of that name and keeps renewing it. The end of ctx ends the attempt, not the hold.
	Hold(ctx context.Context, name string) (Hold, error)
}

// Hold is a lock that is kept.
type Hold interface {
	// Release gives it back. The error is ErrLost if it had been lost before.
	Release(ctx context.Context) error
}

// ErrLost says that a hold ended before its release.
var ErrLost = errors.New("the hold was lost")

// Spec describes a peer and opens it.
type Spec struct {
	Name string
	Does string // what one acquisition and its release do, for readers of the table
	// Alone says that it excludes nobody outside of its process.
	Alone bool
	// Retains says that its client keeps a lock after Unlock until another asks for it.
	Retains bool
	// Shares says who it lets in together.
	Shares Sharing
	// Redis says that it needs a Redis.
	Redis bool
	// Engine is that of package engined, other than Redis, whose server it needs; "" if there is none.
	Engine string
	// Outside says that its workers wait elsewhere, so that the server sees nobody wait.
	Outside bool
	// Sends are the commands, in lower case, that its clients send although scripts might run them, and that its own
	// scripts do not run. The counts need to know them; see engined.Meter.
	Sends []string
	// Open returns the calling process's access.
	Open func(ctx context.Context, at Place) (Peer, error)
}

// All returns every peer, in the order of tables.
func All() []Spec {
	return []Spec{
		interlockFile(), filelockDriver(), interlockMem(), flockOpened(), flockKept(), syncMutex(),
		interlockOn(engined.Redis), interlockGoRedis(), interlockGoRedisPooled(), interlockRueidis(),
		interlockRetain(), interlockRetained(),
		interlockQueueOnRedis(), interlockRW(engined.Redis), interlockSem(),
		setNX(), setNXPool(), setNXFenced(), blpop(), blpopFenced(),
		redsyncDefault(), redsyncFast(), bsmFast(), bsmSlow(), rueidisLock(), rueidisLockLoop(), blpopPermits(),
		interlockOn(engined.ZK), zkLock(),
		interlockOn(engined.Etcd), etcdMutex(), interlockRW(engined.Etcd), etcdRWMutex(),
		interlockOn(engined.MySQL), getLock(), getLockToken(), mysqlTurns(),
		interlockOn(engined.Postgres), advisory(), advisoryToken(), pgTurns(),
		interlockOn(engined.Redlock), redsyncFive(),
	}
}
