package interlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/grants"
	"github.com/interlock-go/interlock/internal/shell"
	"github.com/interlock-go/interlock/internal/trust"
)

// Several mutexes at once: in one step where the engine can, and otherwise one after the other in
// an order that excludes deadlock. docs/rationale.md, Multi, has the decision.

// Multi is several mutexes that are taken together: all of them or none. Make one with [Client.Multi] or [MultiOf]. It
// is safe for concurrent use. The zero value cannot be used.
//
// If all of them are free they are taken in one step where the engine can: in memory, and on Redis. They must be of one
// client for that, and the owner must hold none of them yet. Redis can if the names share a slot, the owner has no name
// and there is no LockDelay. On one server all names share a slot; in a Cluster give them the same {tag}.
//
// Otherwise, and when one of them is held, they are taken one after the other, by name, so that the order is the same
// in every process. See Options.Store for several stores. So owners that take locks by Multi never wait for each other
// in a cycle. During the wait for one, those before it are held.
//
// An owner that already holds a mutex, and now wants one that comes before it in that order, could cause a deadlock. It
// takes that one if it is free; instead of waiting for it, it gets an error that matches ErrDeadlock. Other locks that
// the owner holds (permits, reads and writes, an election) have no place in that order and do not count.
type Multi struct {
	_     core.NoCopy
	locks []*core.Lock // distinct, in the order given
	order []*core.Lock // the same, in the order of taking
	given []int        // where each of order is in locks
	err   error        // reported by the first call
}

// Multi returns the mutexes of those names with the given options, to be taken together. A name that is given twice
// counts once. It asks no engine; invalid names and options are reported by the first call.
func (c *Client) Multi(names []string, opts *LockOptions) *Multi {
	locks := make([]*Mutex, len(names))
	for i, name := range names {
		locks[i] = c.Mutex(name, opts)
	}
	return MultiOf(locks...)
}

// MultiOf returns the given mutexes, to be taken together. They may be of several clients, and of several engines. If a
// lock is given twice the first counts, with its options. Locks of the same name of two clients must be in two stores:
// see Options.Store. It asks no engine; what is wrong with a mutex is reported by the first call.
func MultiOf(locks ...*Mutex) *Multi {
	m := &Multi{}
	type lockID struct { // a set, because there may be thousands: not each compared with each
		c *shell.Client
		driver.Key
	}
	seen := make(map[lockID]struct{}, len(locks))
	for _, l := range locks {
		if l == nil {
			m.err = errors.New("interlock: MultiOf: a mutex is nil")
			return m
		}
		if m.err = shell.CheckLock(&l.lock); m.err != nil {
			return m
		}
		if _, twice := seen[lockID{shell.ClientOf(&l.lock), l.lock.Key()}]; !twice {
			seen[lockID{shell.ClientOf(&l.lock), l.lock.Key()}] = struct{}{}
			m.locks = append(m.locks, l.inner())
		}
	}
	if len(m.locks) == 0 {
		m.err = errors.New("interlock: Multi: there are no names: give at least one")
		return m
	}
	m.sort()
	for i, l := range m.order[1:] {
		if core.Compare(m.order[i], l) == 0 {
			m.err = fmt.Errorf("interlock: MultiOf: %q is given by two clients that cannot be told apart: "+
				"use one client, or give their Options.Store two values if these are two stores", l.Key().Name)
		}
	}
	return m
}

// sort computes the order in which the locks are taken.
func (m *Multi) sort() {
	for i := range m.locks {
		m.given = append(m.given, i)
	}
	slices.SortFunc(m.given, func(a, b int) int { return core.Compare(m.locks[a], m.locks[b]) })
	for _, at := range m.given {
		m.order = append(m.order, m.locks[at])
	}
}

// Lock waits until all the mutexes are held, and returns the holds, which have one owner: that of ctx, or a new one.
// ctx bounds the waiting for all of them together. If one of them cannot be had, or if one that was taken is lost
// meanwhile, those taken are given back and the error says which it was. Errors are as for [Mutex.Lock], and
// ErrDeadlock as described at Multi.
//
// It costs one round trip if it takes all in one step; see [driver.MultiAcquirer] for which engines can. Otherwise it
// costs the round trips of as many Locks, one after the other, and one more if it has tried all in one step before.
func (m *Multi) Lock(ctx context.Context) (*MultiLease, error) { return m.acquire(ctx, false) }

// TryLock takes all the mutexes if they are free, and otherwise none: the error is then a *HeldError for one that is
// not. In one step (see Multi) nobody sees some of them taken meanwhile, and it costs one round trip, whatever the
// answer is. If a client merely retains one of them ([LockOptions].Retain), they are tried one after the other, each as
// by [Mutex.TryLock].
func (m *Multi) TryLock(ctx context.Context) (*MultiLease, error) { return m.acquire(ctx, true) }

// Do calls fn while it holds all the mutexes, and releases them whatever fn does; see [Mutex.Do].
func (m *Multi) Do(ctx context.Context, fn func(ctx context.Context) error) (err error) {
	if err := shell.CheckCall(m.checkMade(), ctx); err != nil {
		return err
	}
	if fn == nil {
		return fmt.Errorf("interlock: Multi: %w", shell.ErrNoFunction)
	}
	l, err := m.Lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = shell.Joined(err, l.unlockInTime(ctx)) }()
	return fn(l.Context(ctx))
}

// acquire is Lock and TryLock. The attempt in one step is made once. Waiting in order means holding the locks before
// the one that is waited for, and trying all again would mean giving those back.
func (m *Multi) acquire(ctx context.Context, try bool) (*MultiLease, error) {
	if err := shell.CheckCall(m.checkMade(), ctx); err != nil {
		return nil, err
	}
	wait := time.Duration(0)
	if !try {
		wait = m.wait()
	}
	bound, bounded := shell.BoundWait(ctx, wait)
	all, err := m.takeAll(bounded, try)
	return all, bound.End("lock", m.order[0].Key(), err)
}

// wait returns the shortest Wait of the mutexes, or 0 if none has one.
func (m *Multi) wait() (shortest time.Duration) {
	for _, l := range m.locks {
		if wait := l.Terms.Wait; wait > 0 && (shortest == 0 || wait < shortest) {
			shortest = wait
		}
	}
	return shortest
}

// takeAll is acquire within the bound that ctx has.
func (m *Multi) takeAll(ctx context.Context, try bool) (*MultiLease, error) {
	o := shell.OwnerFrom(ctx)
	if o == nil {
		o = &core.Owner{ID: shell.ClientOf(m.order[0]).NewID()}
	}
	all := newMultiLease(o, len(m.locks))
	whole := false
	defer func() { // also after a panic of the Observer
		if !whole {
			all.giveBack(ctx)
		}
	}()
	locks := m.labelled(ctx)
	err := m.takeTogether(ctx, all, locks, try)
	if errors.Is(err, errOneByOne) {
		err = m.takeInOrder(ctx, all, locks, try)
	}
	if err == nil {
		whole = true
		return all, nil
	}
	return nil, all.cutShort(m.order[0].Key(), err)
}

// takeInOrder takes locks, which are in the order of taking, into all, one after the other, until one cannot be had.
func (m *Multi) takeInOrder(ctx context.Context, all *MultiLease, locks []*core.Lock, try bool) error {
	// The wait for the next one ends when one that was taken is lost.
	waiting, stop := all.context(ctx)
	defer stop(nil)
	for i, l := range locks {
		lease, err := m.take(waiting, l, all.owner, try)
		if err == nil {
			err = all.add(m.given[i], lease)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// take takes one of the mutexes. It does not wait for one that comes before another which o holds.
func (m *Multi) take(ctx context.Context, l *core.Lock, o *core.Owner, try bool) (*core.Hold, error) {
	if try {
		return shell.Acquire(ctx, l, true)
	}
	above := shell.HeldLater(o, l)
	if above == nil || o.Has(l.Core, l.Key()) {
		return shell.Acquire(ctx, l, false)
	}
	lease, err := shell.Acquire(ctx, l, true)
	var held *HeldError
	if !errors.As(err, &held) {
		return lease, err
	}
	return nil, fmt.Errorf("interlock: lock %q: %w: its owner holds %q, which comes after it, so it must not wait "+
		"for it: %s; "+
		"take them together, or in the order of their names",
		l.Key().Name, ErrDeadlock, above.Lock.Key().Name, held.Error())
}

// The holds of a Multi in one handle: it ends when one of them does.

// MultiLease is the holds that a [Multi] has taken together. It is safe for concurrent use. The zero value cannot be
// used, nor can a copy.
//
// When one of them is lost, the owner has lost what it took them for: Lost is closed and contexts made by Context are
// cancelled. The others stay held until Unlock, so that nobody sees half of the work meanwhile.
type MultiLease struct {
	_      core.NoCopy
	leases []*core.Hold // in the order given; nil where one has not been taken yet
	owner  *core.Owner

	// Guards what follows. It is a leaf, except that it is never held while Machine.Mu is taken.
	mu       sync.Mutex
	lost     chan struct{}
	loss     error // the *LostError of the first hold that was lost
	left     bool  // one of the holds was released
	released bool  // Unlock was called
	contexts core.Endings
}

func newMultiLease(o *core.Owner, n int) *MultiLease {
	return &MultiLease{leases: make([]*core.Hold, n), owner: o, lost: make(chan struct{})}
}

// add takes in the hold at place i, or says why it has ended already. From then on its end reaches l.ended.
func (l *MultiLease) add(i int, lease *core.Hold) error {
	l.leases[i] = lease
	return shell.WatchHold(lease, &shell.LeaseContext{Ending: core.Ending{Cancel: l.ended}})
}

// ended notes that one of the holds has ended, and cancels the contexts. It is called without Machine.Mu, because a
// cancellation runs the user's functions.
func (l *MultiLease) ended(cause error) {
	l.mu.Lock()
	if errors.Is(cause, ErrLost) && l.loss == nil {
		l.loss = cause
		close(l.lost)
	}
	l.left = l.left || errors.Is(cause, ErrReleased)
	contexts := l.contexts.Take()
	l.mu.Unlock()
	for _, w := range contexts {
		w.End(cause)
	}
}

// cutShort returns what ended the taking of all the holds, if one that was taken has ended. That is a loss, or Close,
// because nobody else can have released it yet. Otherwise it returns err.
func (l *MultiLease) cutShort(key driver.Key, err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.loss != nil:
		return l.loss
	case l.left || errors.Is(err, ErrReleased):
		return shell.Wrap("lock", key, ErrClosed)
	}
	return err
}

// Leases returns the holds, one for each distinct lock, in the order in which the locks were given. Each has a token
// and a stamp of its own.
func (l *MultiLease) Leases() []*Lease {
	shell.PanicOn(l.checkMade())
	leases := make([]*Lease, len(l.leases))
	for i, h := range l.leases {
		leases[i] = leaseOf(h)
	}
	return leases
}

// Err returns nil while all of the holds may be trusted, and otherwise the *LostError or ErrReleased of one that may
// not. It looks at the clock itself and asks no engine.
func (l *MultiLease) Err() error {
	if err := l.checkMade(); err != nil {
		return err
	}
	for _, lease := range l.leases {
		if err := shell.EndOf(lease); err != nil {
			return err
		}
	}
	return nil
}

// Lost returns a channel that is closed when one of the holds is lost. It is not closed by a release.
func (l *MultiLease) Lost() <-chan struct{} {
	shell.PanicOn(l.checkMade())
	return l.lost
}

// Context returns a context for the work under the locks. It is cancelled when parent is, and when one of the holds
// ends, with its cause; see [Lease.Context]. It carries the owner of all of them.
func (l *MultiLease) Context(parent context.Context) context.Context {
	shell.PanicOn(shell.CheckCall(l.checkMade(), parent))
	ctx, cancel := l.context(parent)
	if err := l.Err(); err != nil {
		cancel(err)
	}
	return ctx
}

// context is Context; it also works while not all of the holds have been taken.
func (l *MultiLease) context(parent context.Context) (context.Context, context.CancelCauseFunc) {
	w := &shell.LeaseContext{Holds: l.leases, Again: l.Context}
	ctx := w.Begin(parent, l.owner)
	forget := func() { l.contexts.Forget(&w.Ending, l.mu.Lock, l.mu.Unlock) }
	w.Ending.Stop = context.AfterFunc(parent, forget)
	l.mu.Lock()
	l.contexts.Add(&w.Ending)
	l.mu.Unlock()
	return ctx, func(cause error) {
		if w.Ending.Stop() {
			forget()
		}
		w.Ending.Cancel(cause)
	}
}

// taken returns the holds that have been taken so far.
func (l *MultiLease) taken() []*core.Hold {
	return slices.DeleteFunc(slices.Clone(l.leases), func(lease *core.Hold) bool { return lease == nil })
}

// Unlock ends all of the holds, side by side. It tries every one, whatever becomes of the others, and returns the
// errors of those that could not be released, joined; see [Lease.Unlock]. The error of a second Unlock matches
// ErrReleased. It costs one request for each lock, all sent at once: the time of one round trip.
func (l *MultiLease) Unlock(ctx context.Context) error {
	if err := shell.CheckCall(l.checkMade(), ctx); err != nil {
		return err
	}
	if !l.firstUnlock() {
		return l.secondUnlockError()
	}
	return shell.Together(l.leases, func(lease *core.Hold) error { return shell.Unlock(ctx, lease) })
}

// unlockInTime is Unlock for Multi.Do; see Lease.unlockInTime.
func (l *MultiLease) unlockInTime(ctx context.Context) error {
	if !l.firstUnlock() {
		return l.secondUnlockError()
	}
	return shell.Together(l.leases, func(lease *core.Hold) error { return shell.UnlockInTime(ctx, lease) })
}

// secondUnlockError is the error of a second Unlock.
func (l *MultiLease) secondUnlockError() error {
	names := make([]string, len(l.leases))
	for i, lease := range l.leases {
		names[i] = strconv.Quote(lease.Lock.Key().Name)
	}
	return fmt.Errorf("interlock: unlock %s: %w", strings.Join(names, ", "), ErrReleased)
}

// firstUnlock reports whether this is the first Unlock.
func (l *MultiLease) firstUnlock() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := !l.released
	l.released = true
	return first
}

// giveBack ends what was taken of a Multi that cannot be had whole. Nothing was done under it, so it has no MinHold.
// What the engine does not confirm by the end of ctx, or within CloseTimeout, goes on in the background.
func (l *MultiLease) giveBack(ctx context.Context) {
	l.ended(ErrReleased)
	taken := l.taken()
	if len(taken) == 0 {
		return
	}
	// The release repeats itself, and Observers are told.
	_ = shell.Together(taken, func(lease *core.Hold) error { return shell.GiveBackHold(ctx, lease) })
}

// A Multi in one step: where all of its locks are one client's, and its engine can, they are tried together before
// anything else. Nothing is queued for that and nobody is overtaken. So a refusal has cost a round trip and nothing
// more. The Multi then stands in the lines of its locks one after the other, as if it had not tried.

// errOneByOne says that the locks must be taken one after the other. It never reaches a caller.
var errOneByOne = errors.New("not in one step")

// bundle is the locks of a Multi while they are asked for in one step. Only the caller's goroutine uses it.
type bundle struct {
	c        *shell.Client
	locks    []*core.Lock // in the order of taking
	o        *core.Owner
	start    trust.Instant
	grants   []*core.EngineHold
	requests []*driver.Request
}

// takeTogether takes locks, which are all of m in the order of taking, into all in one step. It returns errOneByOne if
// they must be taken one after the other. That is so if they cannot be had in one step. It is so, too, if not all of
// them are free and the caller wants to wait, or if a client merely retains one: a try of that one recalls it.
func (m *Multi) takeTogether(ctx context.Context, all *MultiLease, locks []*core.Lock, try bool) error {
	b := bundle{c: shell.ClientOf(locks[0]), locks: locks, o: all.owner}
	if !b.mayTry(ctx) {
		return errOneByOne
	}
	b.start = b.c.Reading()
	leases, err := b.take(ctx)
	if errors.Is(err, ErrHeld) && driver.IsDefinite(err) && (!try || shell.WouldRecall(err) || b.owned()) {
		return errOneByOne
	}
	var ended error
	// All of them before the Observer is told of any, so that all are given back after a panic.
	for i, lease := range leases {
		ended = cmp.Or(ended, all.add(m.given[i], lease))
	}
	b.tell(ctx, leases, err)
	return cmp.Or(err, ended)
}

// mayTry reports whether all locks are one client's whose engine can, and the owner has none of them yet. What it has
// it re-enters, one by one.
func (b *bundle) mayTry(ctx context.Context) bool {
	if len(b.locks) < 2 || b.c.Bundler == nil || ctx.Err() != nil || b.c.CheckOwner(b.o) != nil {
		return false // what is wrong is reported by the first that is taken
	}
	if slices.ContainsFunc(b.locks, func(l *core.Lock) bool { return shell.ClientOf(l) != b.c }) {
		return false
	}
	return !b.owned()
}

// owned reports whether the owner has one of the locks, or has lost it and not unlocked it yet.
func (b *bundle) owned() bool {
	if !b.o.HoldsAny() {
		return false
	}
	return slices.ContainsFunc(b.locks, func(m *core.Lock) bool { return b.o.Has(m.Core, m.Key()) })
}

// take asks the engine, unless this process knows the answer. It blocks for one round trip.
func (b *bundle) take(ctx context.Context) ([]*core.Hold, error) {
	c := b.c
	if err := b.begin(); err != nil {
		return nil, err
	}
	defer c.Background.Done()
	b.prepare()
	bounded := core.CallContext{User: ctx, Base: c.WaitsCtx}
	b.o.Waits.Add(1) // so that a search for deadlocks does not take the owner for stuck
	answers, err := c.Bundler.AcquireAll(&bounded, b.requests)
	b.o.Waits.Add(-1)
	bounded.End()
	c.Lock()
	defer c.Unlock()
	if err != nil {
		return nil, b.refused(err)
	}
	return b.granted(answers)
}

// yieldMutex gives Machine.Mu to others after each AtOnce locks. What was seen before may have changed after it. The
// caller holds Machine.Mu.
func (b *bundle) yieldMutex(looked int) {
	if looked%core.AtOnce == core.AtOnce-1 {
		b.c.Unlock()
		b.c.Lock()
	}
}

// begin says why the engine need not be asked, or else counts the request as background.
func (b *bundle) begin() error {
	c := b.c
	c.Lock()
	defer c.Unlock()
	for i, l := range b.locks {
		b.yieldMutex(i)
		// The engine would refuse a lock that this client retains; taken alone it is taken over.
		if g := c.Passing(l); g != nil && g.Retained() != nil {
			return errOneByOne
		}
		// Waiters and holders of this process are in the way. Of all others the engine itself knows.
		if !b.alone(l) && (c.Lines[l.LineKey()] != nil || c.Passing(l) != nil) {
			return c.InTheWay(l)
		}
	}
	if c.Closed {
		return shell.Wrap("lock", b.locks[0].Key(), ErrClosed)
	}
	c.Background.Add(1) // under Machine.Mu, so that Close waits for what is under way
	return nil
}

// alone reports whether the request for l is independent of all others in this process; see takeLock.
func (b *bundle) alone(l *core.Lock) bool { return b.o.Named || l.Terms.Single }

// prepare makes the requests, each with an id and a grant of its own.
func (b *bundle) prepare() {
	b.grants, b.requests = make([]*core.EngineHold, len(b.locks)), make([]*driver.Request, len(b.locks))
	for i, l := range b.locks {
		g := l.NewEngineHold(b.c.NewID())
		r := shell.DriverRequest(l, g.ID, b.o)
		r.Try, r.Lost = true, shell.LossOf(g)
		b.grants[i], b.requests[i] = g, &r
	}
}

// refused decides what the engine's err means. If its outcome is unknown, each request is undone. The caller holds
// Machine.Mu.
func (b *bundle) refused(err error) error {
	var held *HeldError
	definite := driver.IsDefinite(err)
	switch {
	case definite && errors.As(err, &held):
		return held
	case definite: // the reason, and which lock it is, is told when they are taken one by one
		return errOneByOne
	}
	b.settle(0, true)
	switch {
	case errors.Is(err, ErrLost): // an operator broke one in the same instant
		return errOneByOne
	case b.c.Closed:
		return shell.Wrap("lock", b.locks[0].Key(), ErrClosed)
	}
	return shell.Explain(b.locks[0].Key(), err)
}

// granted makes the engine's answers holds. If one of them is over already, all are given back, and the locks are taken
// one by one. The caller holds Machine.Mu, which is given to others now and then.
func (b *bundle) granted(answers []driver.Grant) ([]*core.Hold, error) {
	c := b.c
	leases := make([]*core.Hold, 0, len(b.grants))
	for i, g := range b.grants {
		b.yieldMutex(i)
		now := c.Now()
		switch {
		case c.Closed: // Close has released what was taken in before
			b.settle(i, false)
			return nil, shell.Wrap("lock", b.locks[0].Key(), ErrClosed)
		case g.Phase == grants.Revoked || c.ExpiredOnArrival(answers[i], now): // it ended before anybody got it
			b.settle(i, true)
			for _, l := range leases {
				l.Decline()
			}
			return nil, errOneByOne
		}
		old := c.Passing(g.Lock)
		g.Accept(answers[i], now)
		g.Alone = b.alone(g.Lock) || old != nil
		l := g.Lock.NewHold(b.o)
		leases = append(leases, l)
		g.AddHold(l, b.start, now, false)
		g.AddSameOwner()
	}
	return leases, nil
}

// settle releases whatever the requests from the number from on have left. The caller holds Machine.Mu.
func (b *bundle) settle(from int, undo bool) {
	for _, g := range b.grants[from:] {
		g.ReleaseInBackground(undo)
	}
}

// tell tells the Observer of the holds, or of the failure; of errOneByOne it tells nothing, because the call goes on.
func (b *bundle) tell(ctx context.Context, leases []*core.Hold, err error) {
	for _, l := range leases {
		shell.TellAcquired(ctx, l.Lock, l, core.Call{})
	}
	if err == nil || errors.Is(err, errOneByOne) {
		return
	}
	at := 0
	if held := (*HeldError)(nil); errors.As(err, &held) {
		at = max(0, slices.IndexFunc(b.locks, func(l *core.Lock) bool { return l.Key().Name == held.Name }))
	}
	shell.TellFailed(ctx, b.locks[at], b.o, core.Call{Start: b.start}, err)
}

// labelled returns the mutexes in the order of taking, each with the label of the call to which ctx belongs. It copies
// the slice only if one of them changes.
func (m *Multi) labelled(ctx context.Context) []*core.Lock {
	locks := m.order
	for i, l := range m.order {
		own := shell.Labelled(ctx, l)
		if own == l {
			continue
		}
		if &locks[0] == &m.order[0] {
			locks = append([]*core.Lock(nil), m.order...)
		}
		locks[i] = own
	}
	return locks
}

var errNoMulti = errors.New("interlock: Multi was not made by Client.Multi or MultiOf")

var errNoMultiLease = errors.New("interlock: MultiLease was not made by Multi.Lock")

func (m *Multi) checkMade() error {
	if m == nil || len(m.order) == 0 && m.err == nil {
		return errNoMulti
	}
	return m.err
}

func (l *MultiLease) checkMade() error {
	if l == nil || len(l.leases) == 0 {
		return errNoMultiLease
	}
	return nil
}
