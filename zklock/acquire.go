// Acquire: one request from the first question to the grant. queue.go reads the queue and waits, entry.go
// keeps what the driver knows of the request.
//
// What is known of a request stays in its entry: its node, its blocker, the attempt to make its node. So an Acquire
// whose context has ended leaves a place in the queue, and the next Acquire of the same ID goes on from there
// (Traits.Resumes). A step that fails with the connection is repeated over the next, until ctx ends.

package zklock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/interlock-go/interlock/driver"
)

// attempt is one Acquire or Requeue under way. It has the entry's turn, so only one goroutine works on the request at a
// time.
type attempt struct {
	d *Driver
	e *entry
	r *driver.Request
	// give is a hold that is given back in the same step as the node is made, whose turn the attempt has too; nil if
	// there is none.
	give *entry
}

// Acquire puts a node into the lock's queue, and blocks until no node before it is in its way. A wait survives broken
// connections and changes of the leader. If the session ends, the wait begins again at the end of the queue. When ctx
// ends, the node stays in the queue until the request is asked again or undone by Release.
//
// It costs one round trip if the queue is empty. Otherwise it costs three, and one more to learn who the holder is
// unless that is the node directly before. The hand-over costs another: after the server's message about the node
// before it, the waiter reads the queue.
func (d *Driver) Acquire(ctx context.Context, r *driver.Request) (driver.Grant, error) {
	return d.acquire(ctx, r, nil)
}

// acquire acquires r, and gives back the hold give in the same step if that is not nil.
func (d *Driver) acquire(ctx context.Context, r *driver.Request, give *entry) (driver.Grant, error) {
	a := &attempt{d: d, r: r, give: give}
	defer a.keep() // gives up the turn of give, however this ends
	if err := servable(r); err != nil {
		return driver.Grant{}, err
	}
	if err := ctx.Err(); err != nil {
		return driver.Grant{}, err
	}
	e, err := d.enterTurn(ctx, r)
	if err != nil {
		return driver.Grant{}, err
	}
	defer e.give()
	a.e = e
	g, err := a.run(ctx)
	// Nothing of a definite refusal is left, so the same request may be asked again.
	if err != nil && driver.IsDefinite(err) {
		d.drop(e)
	}
	return g, err
}

// servable refuses what can never be granted, before anything is sent. Each error matches driver.ErrUnsupported.
func servable(r *driver.Request) error {
	switch {
	case !slices.Contains(kinds, r.Kind):
		return fmt.Errorf("zk: locks of kind %q: %w", r.Kind, driver.ErrUnsupported)
	case r.Named:
		return fmt.Errorf("zk: named owners: a node belongs to one session: %w", driver.ErrUnsupported)
	// Only the read/write lock has another mode than the exclusive one.
	case r.Mode > driver.Upgradeable || r.Kind != driver.KindRWMutex && r.Mode != driver.Exclusive:
		return fmt.Errorf("zk: mode %d of a %s: %w", r.Mode, r.Kind, driver.ErrUnsupported)
	case r.Name == "" || len(r.Name) > maxName:
		return fmt.Errorf("zk: a lock's name has 1 to %d bytes, not %d: %w", maxName, len(r.Name),
			driver.ErrUnsupported)
	}
	return nil
}

// maxName is the longest name of a lock, in bytes. Encoded it has up to three times as many, which ZooKeeper allows.
const maxName = 512

// errAgain says that the situation has changed, and must be looked at again. It never leaves the package. It is an
// error so that every step has one way to hand back to run.
var errAgain = errors.New("zk: look again")

// run takes one step after the other until the request is granted or refused. Each turn finds the link and the phase
// anew, because the connection, the session and the request itself may have changed in the last one.
func (a *attempt) run(ctx context.Context) (driver.Grant, error) {
	a.remind() // the caller may be another than the one that was told before
	for {
		if g, done, err := a.ended(); done {
			return g, err
		}
		l, err := a.d.ready(ctx, a.e.wait.gone, a.reach(), false)
		if err != nil {
			return driver.Grant{}, a.explain(ctx, err)
		}
		a.join(l.s)
		if err = a.advance(ctx, l); err == nil {
			err = a.grant(ctx, l)
		}
		if err != nil && !isPassing(err) {
			return driver.Grant{}, a.explain(ctx, err)
		}
	}
}

// reach is how long the request waits for a server to talk to. A request with a place in a queue does not give it up
// while the session may live.
func (a *attempt) reach() time.Duration {
	if s := a.e.s; s != nil && (a.e.path != "" || a.e.wait.making != nil) {
		return max(reach, s.timeout)
	}
	return reach
}

// remind tells a caller that takes up a wait again who is in the way.
func (a *attempt) remind() {
	if w := a.e.wait; w != nil && w.blocker != "" && a.r.Waiting != nil {
		a.r.Waiting(w.held)
	}
}

// isPassing reports whether err is over as soon as there is a connection again, or a newer look at the queue. A session
// that is over counts too: in the next one the request begins again, at the end of the queue.
func isPassing(err error) bool {
	return errors.Is(err, errAgain) || errors.Is(err, errNoAnswer) || errors.Is(err, errOver) ||
		errors.Is(err, errStale)
}

// ended reports whether the request is granted or taken back. A copy of a granted request gets the same grant.
func (a *attempt) ended() (g driver.Grant, done bool, err error) {
	e := a.e
	a.d.mu.Lock()
	defer a.d.mu.Unlock()
	switch e.phase {
	case held:
		return driver.Grant{
			Token: uint64(e.czxid) * passes, Tokens: e.tokens, Nonce: e.id,
			Sent: e.s.Confirmed(), Lease: e.s.timeout, Session: e.s,
		}, true, nil
	case ended:
		reason, _ := a.d.gone.Epitaph(e.id)
		return g, true, lostError(e.key, reason)
	// A node that was not made yet, or that is in the queue, is neither granted nor gone.
	case asking:
	}
	return g, false, nil
}

// join makes the request one of session s. What it had in an earlier session has gone with that: nodes are ephemeral.
// Nothing has to be undone there: the servers remove the nodes with the session, and a making that is under way can
// make none in a session that is over.
func (a *attempt) join(s *session) {
	e := a.e
	if e.s == s {
		return
	}
	a.d.mu.Lock()
	defer a.d.mu.Unlock()
	e.s, e.path, e.czxid = s, "", 0
	e.wait.making, e.wait.blocker = nil, ""
}

// advance returns without an error when nobody is in the way any more. It makes the node, reads the queue, and waits,
// each only if that was not done in an earlier turn.
func (a *attempt) advance(ctx context.Context, l *link) error {
	w := a.e.wait
	if err := l.s.admit(ctx, w.gone, a.reach()); err != nil {
		return err
	}
	if err := a.trust(ctx, l); err != nil {
		return err
	}
	// The path is empty until the node is known to be made. A node that is alone in its queue has the lock at once.
	if a.e.path == "" {
		alone, err := a.put(ctx, l)
		if err != nil || alone {
			return err
		}
	}
	// Without a blocker the queue has to be read: it is not known who stands in front.
	if w.blocker == "" {
		free, err := a.look(ctx, l)
		if err != nil || free {
			return err
		}
	}
	return a.await(ctx, l)
}

// trust has the session confirmed if the last confirmation was long ago. This process may have stood still, and then
// read a message that was sent before its session ended. Without that, the queue that is read next could be older than
// the end of the session, and could show a node that has gone.
func (a *attempt) trust(ctx context.Context, l *link) error {
	if l.s.isTrusted() {
		return nil
	}
	return l.prove(ctx)
}

// isTrusted reports whether the session was confirmed within three quarters of its timeout. Only then a look at the
// queue may grant.
func (s *session) isTrusted() bool { return time.Since(s.Confirmed()) < s.timeout*3/4 }

// explain says what an error means to the caller. Whatever the request may have left is found by an undo, so nothing is
// repaired here.
func (a *attempt) explain(ctx context.Context, err error) error {
	var already *driver.HeldError
	switch {
	case errors.As(err, &already), errors.Is(err, driver.ErrUnsupported), errors.Is(err, driver.ErrClosed):
		return err
	case errors.Is(err, driver.ErrLost):
		reason, _ := a.d.reasonOf(a.e)
		return lostError(a.e.key, reason)
	case errors.Is(err, errRetired): // says more than that the time is over
		return classed("lock", a.e.key.Name, err)
	case ctx.Err() != nil:
		return ctx.Err()
	}
	// There may be a node of it, so "nothing was sent" would be wrong.
	if w := a.e.wait; a.e.path != "" || w != nil && w.making != nil {
		return classed("lock", a.e.key.Name, maybeSent(err))
	}
	return classed("lock", a.e.key.Name, err)
}

// reasonOf returns how a request of this driver has ended, if it has.
func (d *Driver) reasonOf(e *entry) (driver.LostReason, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.gone.Epitaph(e.id)
}

// Getting a node for a request. queue.go goes on when it is not alone.
//
// A node that may exist is never left alone: the making stays in the entry until it is known what became of it. Its
// answer, or one look over a later connection, tells. A look over the same connection proves nothing, since the request
// may still be on its way; see link.

// put blocks until the request has a node, and reports whether it is the only one in the queue. Two nodes of one
// request would stand in its own way, so a second is not made before the end of the first is known.
func (a *attempt) put(ctx context.Context, l *link) (alone bool, err error) {
	w := a.e.wait
	m := w.making // of an earlier call whose context ended, if not nil
	if m == nil {
		m = a.start(l)
	}
	select {
	case <-m.done:
	case <-ctx.Done():
		return false, ctx.Err()
	case <-w.gone:
		return false, driver.ErrLost
	case <-l.s.over:
		return false, errOver
	}
	switch {
	case m.err == nil:
		w.making = nil
		a.own(m.path, m.czxid)
		// The numbers are running out: the lock's node must be replaced.
		if m.seq < 0 || m.seq >= a.d.spentAt {
			return false, a.drain(ctx, l)
		}
		return m.alone, nil
	case !errors.Is(m.err, errNoAnswer):
		w.making = nil // it is certain that this attempt has left no node
		// The hold to give back was ended by somebody else, so there is nothing to requeue.
		if errors.Is(m.err, errNothingToGive) {
			a.nothingToGive(m.hold)
			a.d.drop(a.e)
			return false, driver.ErrLost
		}
		return false, m.err
	// The same connection: nothing can be found out over it. The caller comes back with the next one.
	case m.l == l:
		return false, errNoAnswer
	}
	return false, a.find(ctx, l, m)
}

// start makes a node in the background.
func (a *attempt) start(l *link) *making {
	d := a.d
	m := &making{
		l: l, lock: d.tree.lock(a.e.key), mode: a.r.Mode, note: noteOf(a.r), done: make(chan struct{}),
	}
	d.mu.Lock()
	m.name = d.newName(m.mode)
	if a.give != nil {
		m.give, m.hold = a.give.path, a.give
		// From here on the hold may be gone by our own doing, and that must not look like a break.
		a.give.ending, a.give.unsure = true, true
	}
	d.mu.Unlock()
	a.e.wait.making = m
	// The driver is closed: nothing was sent, and done must be closed for whoever waits.
	if !d.spawn(m.run) {
		m.err = errOver
		close(m.done)
	}
	return m
}

// nothingToGive ends the hold that was to be given back and is gone. An Acquire may have taken up the wait of a
// Requeue, and then does not have the turn of the hold. If somebody else has it, that is a release, which finds out by
// itself.
func (a *attempt) nothingToGive(hold *entry) {
	if a.give == nil {
		select {
		case hold.turn <- struct{}{}:
			defer hold.give()
		default:
			return
		}
	}
	a.d.broke(hold)
}

// own records the node that the request has, or that it has none. asOf begins with the node's own transaction: what was
// written to the node before a later look is no break of the hold; see guard.
func (a *attempt) own(path string, czxid int64) {
	a.given() // the hold to give back has gone in the same transaction
	a.d.mu.Lock()
	defer a.d.mu.Unlock()
	a.e.path, a.e.czxid, a.e.asOf = path, czxid, czxid
}

// find finds out whether an attempt whose reply was lost has made its node. Since then the version of the session's
// node was raised, so it has done so by now or never will; see link. Only a node of our own session counts. It is not
// known whether the node was alone, so the queue is read next.
func (a *attempt) find(ctx context.Context, l *link, m *making) error {
	path, czxid, err := l.find(ctx, m)
	if err != nil {
		return err
	}
	a.e.wait.making = nil
	if path != "" {
		a.own(path, czxid)
	}
	return errAgain
}

// find returns the node that m has made, or "". Its name tells: no other request has it.
func (l *link) find(ctx context.Context, m *making) (path string, czxid int64, err error) {
	found, err := l.children(ctx, m.lock)
	if errors.Is(err, zk.ErrNoNode) {
		return "", 0, nil
	}
	if err != nil {
		return "", 0, err
	}
	for _, name := range found.names {
		if !strings.HasPrefix(name, m.name) {
			continue
		}
		got, err := l.get(ctx, m.lock+"/"+name)
		switch {
		case errors.Is(err, zk.ErrNoNode):
			return "", 0, nil
		case err != nil:
			return "", 0, err
		// A node of another session ends with that session.
		case got.stat.EphemeralOwner == l.s.id:
			return m.lock + "/" + name, got.stat.Czxid, nil
		}
	}
	return "", 0, nil
}

// Making a request's node: one transaction, in a goroutine that goes on even if the caller leaves.
//
// The transaction that makes a node is the only request that may leave something behind which nobody knows of. Three
// things find it or keep it out: the node's name, which no other request ever has; the owner of the node, which says
// whose session it is; and the version of the session's node, without which a copy that arrives late is refused.

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

// From a place without anybody before it to a hold, and what to do when numbers run out.
//
// Nothing is written for a grant: the queue says who has the lock. So the last step is a decision of this process
// alone, and it must be made while the session is known to live.

// grant makes the request a hold.
func (a *attempt) grant(ctx context.Context, l *link) error {
	e := a.e
	// The session is asked first, and then the queue once more: what the queue said may be from before the session's
	// end.
	if !l.s.isTrusted() {
		e.wait.blocker = ""
		return errAgain
	}
	if e.czxid > a.d.zxidEnd { // its token would not fit
		if err := a.withdraw(ctx, l); err != nil {
			return err
		}
		return fmt.Errorf("zk: transaction %#x makes no token below 2^63: %w", e.czxid, driver.ErrUnsupported)
	}
	waited := e.wait.held != nil
	err := a.d.hold(e, l.s)
	// Only what is a hold already can listen, so that comes last.
	// A hold that came after a wait is not retained, so it is in no hurry to hear who asks; see listenNow.
	if err == nil && e.retains && e.wanted != nil && !waited {
		a.d.listenNow(l, e)
	}
	return err
}

// withdraw removes the request's node, for a request that goes on or fails for good. Its wait begins anew with another
// node, or the request ends with an error. In both cases nobody may wait behind the old node.
func (a *attempt) withdraw(ctx context.Context, l *link) error {
	if err := l.delete(ctx, a.e.path); err != nil {
		return err
	}
	l.tidy(a.d.tree.lock(a.e.key))
	a.own("", 0)
	a.e.wait.blocker = ""
	return nil
}

// spent is the number in a node's name from which on a lock's node is not used any more. The server counts with 32
// bits, and would begin anew with the lowest number, which would be the first in the queue. A million numbers are left
// for requests that come before the node is replaced. A client that sees a large number only gives way, so all clients
// need not agree on the moment.
const spent = 1<<31 - 1 - 1<<20

// drain gives way until the queue is empty, and then removes the lock's node: the next one counts from 0. This happens
// once in two thousand million acquisitions of a lock that is never free for long, and costs the waiters their order.
// Everybody who sees such a number gives way, so the queue does become empty.
func (a *attempt) drain(ctx context.Context, l *link) error {
	if err := a.withdraw(ctx, l); err != nil {
		return err
	}
	err := l.delete(ctx, a.d.tree.lock(a.e.key))
	// Only an empty node can be removed. The servers refuse it while anybody stands in the queue, and the request gives
	// way again.
	switch {
	case err == nil:
		return errAgain
	case !errors.Is(err, zk.ErrNotEmpty):
		return err
	case a.r.Try:
		return heldBy(a.e.key, nil)
	}
	// The pause is random, so that clients that give way do not come back all at once.
	pause := time.NewTimer(drainPause + rand.N(drainPause))
	defer pause.Stop()
	select {
	case <-pause.C:
		return errAgain
	case <-ctx.Done():
		return ctx.Err()
	case <-a.e.wait.gone:
		return driver.ErrLost
	}
}

// drainPause is the shortest pause before another look; a random part is added, so that not all look at once.
const drainPause = 20 * time.Millisecond

// Requeue: giving back and asking again in one transaction.
//
// The turns of both requests are taken, the old one's first, so that no release of the old hold is under way beside the
// transaction that deletes it. A requeue whose outcome is unknown leaves the old hold marked unsure; see leave.

// Requeue releases give and acquires r at the end of the queue, in one transaction and one round trip; then it waits as
// Acquire does. If the hold is over, the error matches driver.ErrLost. The turn of the old hold is kept until its end
// is known, or until the call ends.
func (d *Driver) Requeue(ctx context.Context, give *driver.Release, r *driver.Request) (driver.Grant, error) {
	if err := requeueable(give, r); err != nil {
		return driver.Grant{}, err
	}
	e, err := d.holdOf(give)
	if err != nil {
		if d.knows(r.ID) { // it is asked once more, and has given the hold back already
			return d.Acquire(ctx, r)
		}
		return driver.Grant{}, err
	}
	if err := e.take(ctx); err != nil {
		return driver.Grant{}, err
	}
	if _, err := d.holdOf(give); err != nil { // a release was quicker
		e.give()
		return driver.Grant{}, err
	}
	return d.acquire(ctx, r, e)
}

// knows reports whether a request was asked for and is not over.
func (d *Driver) knows(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.entries[id] != nil
}

// requeueable refuses what is not one hold for another of the same lock.
func requeueable(give *driver.Release, r *driver.Request) error {
	switch {
	case give.Undo, r.Try, give.Key != r.Key:
		return fmt.Errorf("zk: this requeue is none of one hold for a wait for the same lock: %w",
			driver.ErrUnsupported)
	}
	return servable(r)
}

// given records that the hold to be given back has ended. It is called as soon as the new node is known, since both
// were one transaction.
func (a *attempt) given() {
	if a.give == nil {
		return
	}
	a.d.over(a.give, "")
	a.d.sweepMark(a.give)
	a.keep()
}

// keep gives up the turn of the hold that was to be given back. Whether it was given back is unknown unless it is over.
func (a *attempt) keep() {
	if a.give != nil {
		a.give.give()
		a.give = nil
	}
}
