package target

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
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

// endZooSession ends a session of somebody else, as an operator does by JMX (the operation terminateSession of
// a connection). For that it comes as the session's client, whose password servers compute from its number,
// and says that it ends. The client itself may come back in between, for which the server closes our
// connection: then it is tried again.
func endZooSession(ctx context.Context, addr string, session int64) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for range 10 {
		if err = sayGoodbye(ctx, addr, session); err == nil || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("ending a session of ZooKeeper: %w", err)
	}
	return nil
}

// sayGoodbye tries it once.
func sayGoodbye(ctx context.Context, addr string, session int64) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	end, _ := ctx.Deadline()
	if err := conn.SetDeadline(end); err != nil {
		return err
	}
	order := binary.BigEndian
	var hello []byte
	hello = order.AppendUint32(hello, 0)               // the version of the protocol
	hello = order.AppendUint64(hello, 0)               // the newest transaction it has seen
	hello = order.AppendUint32(hello, 2000)            // the timeout, in milliseconds
	hello = order.AppendUint64(hello, uint64(session)) //nolint:gosec // as two's complement
	hello = append(framed(hello, zooPassword(session)), 0)
	goodbye := order.AppendUint32(order.AppendUint32(nil, 1), 1<<32-11) // request 1: end the session
	if _, err := conn.Write(framed(framed(nil, hello), goodbye)); err != nil {
		return err
	}
	// its length, and the version; the timeout that follows is 0 if there is no such session, which has ended meanwhile
	var answer [8]byte
	if _, err := io.ReadFull(conn, answer[:]); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, conn) // the server closes the connection, or resets it
	return nil
}

// framed appends what has its length before it.
func framed(to, what []byte) []byte {
	return append(binary.BigEndian.AppendUint32(to, uint32(len(what))), what...) //nolint:gosec // it is short
}

// zooPassword is what a server takes for the password of a session: 16 bytes of Java's generator of
// random numbers with that seed.
func zooPassword(session int64) []byte {
	const factor, mask = 0x5DEECE66D, 1<<48 - 1
	seed := (uint64(session) ^ 0xB3415C00 ^ factor) & mask //nolint:gosec // as two's complement
	var password []byte
	for range 4 {
		seed = (seed*factor + 0xB) & mask
		//nolint:gosec // the upper 32 of 48 bits
		password = binary.LittleEndian.AppendUint32(password, uint32(seed>>16))
	}
	return password
}

// zooLeft lists the nodes that are left below the root. What may be there is what zklock/wire.md has for free locks:
// the folders of kinds and of sessions, and for each lock an empty container, which the servers remove and do not tell
// from other nodes. So there is no session's own node and no request.
func zooLeft(addrs []string) left {
	return func(ctx context.Context) (found []string, err error) {
		err = onZooKeeper(ctx, addrs, func(c *zk.Conn) error {
			folders, _, err := c.Children(zooRoot)
			if err != nil {
				return err
			}
			for _, folder := range folders {
				path := zooRoot + "/" + folder
				if !slices.Contains([]string{"mutex", "rw", "election", "sessions"}, folder) {
					found = append(found, fmt.Sprintf("the node %s is none of interlock's", path))
					continue
				}
				in, err := zooLeftIn(c, path, folder == "sessions")
				if err != nil {
					return err
				}
				found = append(found, in...)
			}
			return nil
		})
		return found, err
	}
}

// zooLeftIn lists what is left in a folder, of locks or of sessions.
func zooLeftIn(c *zk.Conn, folder string, sessions bool) (found []string, err error) {
	names, _, err := c.Children(folder)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		path := folder + "/" + name
		requests, _, err := c.Children(path)
		switch {
		case errors.Is(err, zk.ErrNoNode): // it has just been removed
		case err != nil:
			return nil, err
		case sessions:
			found = append(found, fmt.Sprintf("the node %s is of a session that has not ended", path))
		}
		for _, request := range requests {
			found = append(found, fmt.Sprintf("the node %s/%s holds or waits", path, request))
		}
	}
	return found, nil
}
