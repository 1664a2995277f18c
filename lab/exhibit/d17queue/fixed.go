package d17queue

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"
)

// Fixed is a lock that has one node with a fixed name, seen by one session. Whoever creates the node has the lock, and
// everybody else watches it: its end wakes them all, and they all try again.
type Fixed struct {
	Conn *zk.Conn
	Path string

	Tell     func(command, answer string) // hears each command, as ZooKeeper's own client writes it
	Watching func()                       // hears that it waits
	Woken    func()                       // hears that it was woken, before it does anything
}

// Lock waits until this session's node is there.
func (l *Fixed) Lock(ctx context.Context) error {
	for {
		_, err := l.Conn.Create(l.Path, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
		switch {
		case err == nil:
			l.Tell("create -e "+l.Path, "created")
			return nil
		case !errors.Is(err, zk.ErrNodeExists):
			return err
		}
		l.Tell("create -e "+l.Path, "it exists already")
		there, _, gone, err := l.Conn.ExistsW(l.Path)
		if err != nil {
			return err
		}
		if !there {
			continue
		}
		l.Tell("stat -w "+l.Path, "it is there")
		l.Watching()
		if err := deleted(ctx, gone); err != nil {
			return err
		}
		l.Woken()
		l.Tell("the watch", l.Path+" is gone")
	}
}

// Unlock deletes the node.
func (l *Fixed) Unlock() error {
	l.Tell("delete "+l.Path, "")
	return l.Conn.Delete(l.Path, -1)
}

// deleted returns when a watch says that its node was deleted.
func deleted(ctx context.Context, watch <-chan zk.Event) error {
	select {
	case event := <-watch:
		if event.Type != zk.EventNodeDeleted {
			return zk.ErrSessionExpired // it is this session that has ended
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
