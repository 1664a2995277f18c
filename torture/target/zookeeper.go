package target

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

// zooRoot is the node below which the locks are.
const zooRoot = "/torture"

// zooOperator are the faults that somebody does to a ZooKeeper by one of its servers.
func zooOperator(addrs []string) map[Fault]Inject {
	return map[Fault]Inject{
		Sessions: endZooSessions(addrs),
		Delete: once(func(ctx context.Context, dice *rand.Rand) (done bool, err error) {
			err = onZooKeeper(ctx, addrs, func(c *zk.Conn) error {
				locks, err := zooLocks(c, "mutex")
				if err != nil {
					return err
				}
				dice.Shuffle(len(locks), func(a, b int) { locks[a], locks[b] = locks[b], locks[a] })
				for _, lock := range locks {
					if done, err = deleteRequests(c, lock); done || err != nil {
						return err
					}
				}
				return nil
			})
			return done, err
		}),
		Wipe: func(ctx context.Context, _ *rand.Rand, _ time.Duration) error {
			return onZooKeeper(ctx, addrs, func(c *zk.Conn) error {
				locks, err := zooLocks(c, "mutex", "rw", "election")
				for _, lock := range locks {
					_, failed := deleteRequests(c, lock)
					err = errors.Join(err, failed)
				}
				return err
			})
		},
	}
}

// zooLocks are the paths of the nodes of all locks of some kinds.
func zooLocks(c *zk.Conn, kinds ...string) (paths []string, err error) {
	for _, kind := range kinds {
		names, _, err := c.Children(zooRoot + "/" + kind)
		if err != nil && !errors.Is(err, zk.ErrNoNode) { // otherwise nobody has used one yet
			return nil, err
		}
		for _, name := range names {
			paths = append(paths, zooRoot+"/"+kind+"/"+name)
		}
	}
	return paths, nil
}

// deleteRequests deletes the nodes of all who hold a lock or wait for it, the latest first, so
// that nobody gets it by that.
func deleteRequests(c *zk.Conn, lock string) (some bool, err error) {
	requests, _, err := c.Children(lock)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return false, err
	}
	slices.SortFunc(requests, func(a, b string) int { return -cmp.Compare(number(a), number(b)) })
	for _, request := range requests {
		switch err := c.Delete(lock+"/"+request, -1); {
		case err == nil:
			some = true
		case !errors.Is(err, zk.ErrNoNode): // otherwise it has left meanwhile
			return some, err
		}
	}
	return some, nil
}

// number is the place of a request in its queue, which is the end of its name.
func number(request string) string { return request[strings.LastIndexByte(request, '-')+1:] }

// endZooSessions ends the session of every client.
func endZooSessions(addrs []string) Inject {
	return func(ctx context.Context, dice *rand.Rand, _ time.Duration) error {
		var names []string
		err := onZooKeeper(ctx, addrs, func(c *zk.Conn) (err error) {
			names, _, err = c.Children(zooRoot + "/sessions")
			return err
		})
		for _, name := range names {
			id, _, _ := strings.Cut(name, ".")
			session, failed := strconv.ParseUint(id, 16, 64)
			if failed == nil {
				//nolint:gosec // as it was written
				failed = endZooSession(ctx, addrs[dice.IntN(len(addrs))], int64(session))
			}
			err = errors.Join(err, failed)
		}
		return err
	}
}

// onZooKeeper does something with a client of the library.
func onZooKeeper(ctx context.Context, addrs []string, do func(c *zk.Conn) error) error {
	c, _, err := zk.Connect(addrs, 10*time.Second, zk.WithLogger(silent{}), zk.WithLogInfo(false))
	if err != nil {
		return err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, c.Close)() // what it waits for ends then
	return do(c)
}

// silent is a logger: what matters is an error.
type silent struct{}

func (silent) Printf(string, ...any) {}
