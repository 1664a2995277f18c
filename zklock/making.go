// Making a request's node: one transaction, in a goroutine that goes on even if the caller leaves. put.go starts it and
// reads the result.
//
// The transaction that makes a node is the only request that may leave something behind which nobody knows of. Three
// things find it or keep it out: the node's name, which no other request ever has; the owner of the node, which says
// whose session it is; and the version of the session's node, without which a copy that arrives late is refused.

package zklock

import (
	"errors"
	"strings"

	"github.com/go-zookeeper/zk"
	"github.com/interlock-go/interlock/driver"
)

var (
	// errStale says that a transaction was refused because of the session's own node; see link.stale.
	errStale = errors.New("zk: the connection is not the session's latest")

	// errNothingToGive says that a transaction was refused because the hold that it gives back is not there.
	errNothingToGive = errors.New("zk: the hold that was to be given back is gone")
)

// making is one attempt to put a node into a lock's queue. It goes on by itself when nobody waits for it any more: the
// server may already have it, and only its end tells what is left. It is not a part of the attempt, which ends with the
// caller's context; the next attempt of the same request finds it in the entry.
type making struct {
	l    *link  // the connection; a later one finds out what became of it
	lock string // the path of the lock's node
	name string // of the node, without the number that the server appends
	mode driver.Mode
	note []byte // what operators see of the request
	give string // the path of a hold that is given back in the same step; empty if none
	hold *entry // that hold

	done chan struct{} // closed at the end

	// Set before done is closed, and constant then.
	path  string
	seq   int32 // the number in the node's name: its place
	czxid int64 // the transaction that made it
	alone bool  // there is no other node in the queue
	err   error
}

// insertTries is how often the lock's node is made again. The servers may remove an empty one at any time.
const insertTries = 8

// run makes the node, and the lock's node if that is missing. It is a goroutine of its own. Each step of it is safe to
// be carried out by several clients at once: only one of them makes the lock's node.
func (m *making) run() {
	defer close(m.done)
	for range insertTries {
		m.err = m.insert()
		if !errors.Is(m.err, zk.ErrNoNode) {
			return
		}
		if m.err = m.makeLock(); m.err != nil {
			return
		}
	}
	m.err = zk.ErrNoNode
}

// inserted is what a transaction tells that has put a node into a queue.
type inserted struct {
	path string
	lock *zk.Stat
}

// insert is the transaction. It also writes to the lock's node, which tells two things that the library does not tell
// otherwise: the number of the transaction, which is the new node's czxid, and how many nodes are in the queue now. It
// costs nothing more.
func (m *making) insert() error {
	// The old hold is deleted first, so that the new node counts as alone if nobody else waits.
	ops := make([]any, 0, 4)
	if m.give != "" {
		ops = append(ops, &zk.DeleteRequest{Path: m.give, Version: -1})
	}
	check := len(ops) // the index of the check, to know which operation was refused
	acl := m.l.s.d.opts.ACL
	ops = append(ops,
		&zk.CheckVersionRequest{Path: m.l.node, Version: m.l.epoch},
		&zk.CreateRequest{Path: m.lock + "/" + m.name, Data: m.note, Acl: acl, Flags: zk.FlagEphemeralSequential},
		&zk.SetDataRequest{Path: m.lock, Data: nothing, Version: -1})
	failed := -1
	in, err := now(m.l, true, func(c *zk.Conn) (in inserted, err error) {
		var results []zk.MultiResponse
		if results, failed, err = multi(c, ops...); err == nil {
			in = inserted{results[check+1].String, results[check+2].Stat}
		}
		return in, err
	})
	switch {
	case err == nil:
		return m.took(in)
	// The check failed: a later connection has raised the version, so this one must not be used.
	case failed == check:
		m.l.stale()
		return errStale
	// The deletion is the only operation before the check.
	case failed >= 0 && failed < check && errors.Is(err, zk.ErrNoNode):
		return errNothingToGive
	}
	return err
}

var nothing = []byte{}

// took reads the result of the transaction.
func (m *making) took(in inserted) error {
	p, ok := parseQueuePlace(in.path[strings.LastIndexByte(in.path, '/')+1:])
	if !ok {
		return errors.New("zk: the server has made a node of another name: " + in.path)
	}
	// The lock's node was written to in the same transaction, so its mzxid is the new node's czxid.
	m.path, m.seq, m.czxid = in.path, p.seq, in.lock.Mzxid
	m.alone = in.lock.NumChildren == 1
	return nil
}

// makeLock makes the lock's node, as a container: the servers remove it some time after the last node below it has
// gone. Servers before 3.5 do not know containers, and there the driver removes it itself; see tidy.
func (m *making) makeLock() error {
	err := m.container()
	if errors.Is(err, zk.ErrNoNode) {
		if err = m.l.makeFolder(m.l.s.d.life, parent(m.lock)); err == nil {
			err = m.container()
		}
	}
	if errors.Is(err, zk.ErrNodeExists) {
		return nil
	}
	return err
}

// container makes the node itself. It remembers that the servers do not know containers.
func (m *making) container() error {
	d := m.l.s.d
	d.mu.Lock()
	plain := d.plain
	d.mu.Unlock()
	if !plain {
		_, err := now(m.l, true, func(c *zk.Conn) (string, error) {
			return c.CreateContainer(m.lock, nothing, zk.FlagContainer, d.opts.ACL)
		})
		// Containers came with ZooKeeper 3.5. A server without them does not know the request, and then the node is one
		// that stays.
		if !isUnimplemented(err) {
			return err
		}
		d.mu.Lock()
		d.plain = true
		d.mu.Unlock()
	}
	_, err := now(m.l, true, func(c *zk.Conn) (string, error) { return c.Create(m.lock, nothing, 0, d.opts.ACL) })
	return err
}

// tidy removes the node of a lock in the background if it is not needed, where the servers do not do that by
// themselves. It removes an empty node only, which the servers see to, so it does no harm to a request that has just
// come.
func (l *link) tidy(lock string) {
	d := l.s.d
	d.mu.Lock()
	plain := d.plain
	d.mu.Unlock()
	if plain {
		// An error does not matter: the lock is in use, or another is quicker, or the next release does it.
		d.spawn(func() { _ = l.delete(d.life, lock) })
	}
}

// multi makes one transaction. If it was refused, failed is the index of the operation that was the reason, otherwise
// -1. The servers mark those before it as done and those after it as not tried, so the first error is the reason.
func multi(c *zk.Conn, ops ...any) (results []zk.MultiResponse, failed int, err error) {
	results, err = c.Multi(ops...)
	if err == nil {
		return results, -1, nil
	}
	for i := range results {
		if results[i].Error != nil {
			return results, i, err
		}
	}
	return nil, -1, err
}
