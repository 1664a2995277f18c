// Package d17queue is an exhibit, broken on purpose: ZooKeeper's recipe for a lock, with ephemeral nodes that the
// server numbers, and a shortcut in it. Whoever has the lowest number has the lock, and everybody else watches the one
// before. The recipe has who is woken look again; the shortcut takes the lock at once. Beside it stands the lock with
// one node for all, which the recipe is there to replace.
package d17queue

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"
)

// Lock is one lock, seen by one session.
type Lock struct {
	Conn     *zk.Conn
	Dir      string
	Shortcut bool // who is woken does not look again

	Tell     func(command, answer string) // hears each command, as ZooKeeper's own client writes it
	Watching func()                       // hears that it waits

	mine string
}

// Lock takes a number, and waits until it is the lowest.
func (l *Lock) Lock(ctx context.Context) (err error) {
	l.mine, err = l.Conn.Create(l.Dir+"/n-", nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
	if err != nil {
		return err
	}
	l.Tell("create -e -s "+l.Dir+"/n-", path.Base(l.mine))
	for {
		before, err := l.before()
		if err != nil || before == "" {
			return err
		}
		there, _, gone, err := l.Conn.ExistsW(l.Dir + "/" + before)
		if err != nil {
			return err
		}
		if !there {
			continue
		}
		l.Tell("stat -w "+l.Dir+"/"+before, "it is there")
		l.Watching()
		if err := deleted(ctx, gone); err != nil {
			return err
		}
		l.Tell("the watch", before+" is gone")
		if l.Shortcut {
			return nil
		}
	}
}

// before returns the node before this session's, or nothing if its own is the first.
func (l *Lock) before() (string, error) {
	nodes, _, err := l.Conn.Children(l.Dir)
	if err != nil {
		return "", err
	}
	slices.Sort(nodes)
	l.Tell("ls "+l.Dir, strings.Join(nodes, ", "))
	at := slices.Index(nodes, path.Base(l.mine))
	if at < 0 {
		return "", zk.ErrNoNode // the session is over
	}
	if at == 0 {
		return "", nil
	}
	return nodes[at-1], nil
}

// Node returns the path of this session's node.
func (l *Lock) Node() string { return l.mine }

// Unlock gives the number back.
func (l *Lock) Unlock() error {
	l.Tell("delete "+l.mine, "")
	return l.Conn.Delete(l.mine, -1)
}
