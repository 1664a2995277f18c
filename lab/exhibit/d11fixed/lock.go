// Package d11fixed is an exhibit, broken on purpose: one fixed ephemeral node in ZooKeeper. Whoever creates it has the
// lock, and everybody else watches it, so each release wakes all waiters.
package d11fixed

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"
)

// Lock is one lock, seen by one session.
type Lock struct {
	Conn *zk.Conn
	Path string
}

// Lock waits until this session's node is there.
func (l *Lock) Lock(ctx context.Context) error {
	for {
		_, err := l.Conn.Create(l.Path, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
		if !errors.Is(err, zk.ErrNodeExists) {
			return err
		}
		there, _, deleted, err := l.Conn.ExistsW(l.Path)
		if err != nil {
			return err
		}
		if !there {
			continue
		}
		select {
		case <-deleted: // everybody is told, and everybody tries again
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Unlock deletes the node.
func (l *Lock) Unlock() error { return l.Conn.Delete(l.Path, -1) }
