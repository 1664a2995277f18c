package peer

import (
	"context"

	"github.com/go-zookeeper/zk"
	"github.com/interlock-go/interlock/bench/engined"
)

func zkLock() Spec {
	return Spec{
		Name: "zk.Lock",
		Does: "zk.Lock of go-zookeeper: a protected ephemeral sequential node, the children of the parent, a watch " +
			"on the predecessor, and a node deleted; no context, no token, and no notice of the end of the " +
			"session",
		Engine: engined.ZK,
		Open: func(_ context.Context, at Place) (Peer, error) {
			conn, _, err := zk.Connect([]string{at.Server}, at.leaseOr(usualLease), zk.WithLogger(mute{}))
			if err != nil {
				return nil, err
			}
			return &zkLocks{conn: conn, space: at.run()}, nil
		},
	}
}

// mute is a logger.
type mute struct{}

// Printf writes nothing.
func (mute) Printf(string, ...any) {}

type zkLocks struct {
	conn  *zk.Conn
	space string
}

// Worker returns a Lock; all workers share the session.
func (z *zkLocks) Worker(name string) (Worker, error) {
	return zkWorker{zk.NewLock(z.conn, "/"+z.space+name, zk.WorldACL(zk.PermAll))}, nil
}

// Close ends the session.
func (z *zkLocks) Close() error {
	z.conn.Close()
	return nil
}

type zkWorker struct{ lock *zk.Lock }

// Lock waits. The end of ctx does not end zk.Lock, which gives back what it gets later. Several who make the parent at
// once are told so by an error in some versions.
func (w zkWorker) Lock(ctx context.Context) error {
	if ctx.Done() == nil {
		return w.lock.Lock()
	}
	got := make(chan error, 1)
	go func() { got <- w.lock.Lock() }() // ends with its turn, or with the session
	select {
	case err := <-got:
		return err
	case <-ctx.Done():
	}
	go func() {
		if <-got == nil {
			_ = w.lock.Unlock() // nobody waits for that
		}
	}()
	return ctx.Err()
}

// Unlock deletes the node.
func (w zkWorker) Unlock(context.Context) error { return w.lock.Unlock() }
