package shell

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/grants"
	"github.com/interlock-go/interlock/internal/trust"
)

// Where Lock and TryLock begin: the owner in the context decides. An owner that holds the lock re-enters (reenter,
// reenterGrant); any other takes it, from this client's own grants or from the engine. What follows is tryLocal for
// a local engine, join for a wait, and direct.go for readers, writers and permits.

// Acquire is Lock and TryLock. The label comes first, because it belongs to this call alone. The Observer hears of
// every end, but of nothing that is wrong before there is a client to name.
func Acquire(ctx context.Context, m *core.Lock, try bool) (*core.Hold, error) {
	if err := mayAcquire(ctx, m); err != nil {
		return nil, err
	}
	m = Labelled(ctx, m)
	at := ClientOf(m).NewCall()
	o := OwnerFrom(ctx)
	wait := m.Terms.Wait
	if try {
		wait = 0
	}
	bound, bounded := BoundWait(ctx, wait)
	lease, err := attemptLock(bounded, m, o, try, at)
	if err = bound.End("lock", m.Key(), err); err != nil {
		TellFailed(ctx, m, o, at, err)
		return nil, err
	}
	TellAcquired(ctx, m, lease, at)
	return lease, nil
}

// mayAcquire returns the errors of which no Observer can be told: a mutex that nobody made, a nil context. A bad name
// or bad options are left to attempt, so that the Observer is told of them.
func mayAcquire(ctx context.Context, m *core.Lock) error {
	if err := CheckLock(m); err != nil && (m == nil || m.Terms == nil || ClientOf(m).CheckMade() != nil) {
		return err
	}
	return CheckContext(ctx)
}

// TellAcquired tells the Observer and the log that an attempt has brought lease.
func TellAcquired(ctx context.Context, m *core.Lock, lease *core.Hold, at core.Call) {
	c := ClientOf(m)
	var how Facts
	EndCall(at, &how)
	TellHeld(ctx, lease, how)
	log := c.Config.Logger
	if log.Enabled(ctx, slog.LevelDebug) {
		log.LogAttrs(ctx, slog.LevelDebug, "interlock: lock acquired", slog.String("lock", m.Key().Name),
			slog.String("engine", c.Traits.Engine), slog.Uint64("token", TokenOf(lease)),
			slog.String("owner", lease.Owner.ID))
	}
}

// TellFailed tells the Observer that a call of o has failed with err. o is nil if the call had no owner yet.
func TellFailed(ctx context.Context, m *core.Lock, o *core.Owner, at core.Call, err error) {
	c := ClientOf(m)
	e := factsOf(m, o)
	EndCall(at, &e)
	e.Waited, e.Err = c.Reading().Since(at.Start), err
	c.TellFailed(ctx, e)
}

// attemptLock is acquire without what the Observer is told.
func attemptLock(ctx context.Context, m *core.Lock, o *core.Owner, try bool, at core.Call) (*core.Hold, error) {
	if m.Terms.Err != nil {
		return nil, m.Terms.Err
	}
	if m.Terms.Share.Direct {
		return AttemptDirect(ctx, m, o, try, at)
	}
	lease, err := reenter(ctx, m, o)
	if lease == nil && err == nil {
		return takeLock(ctx, m, o, try, at)
	}
	return lease, err
}

// reenter returns another hold if o already has one. It returns nil and no error if o has none, and then the caller
// takes the lock. An owner that lost the lock and has not unlocked it yet gets the loss. To take the lock anew without
// a word would hide that another owner was inside meanwhile.
func reenter(ctx context.Context, m *core.Lock, o *core.Owner) (*core.Hold, error) {
	c := ClientOf(m)
	if o == nil {
		return nil, nil //nolint:nilnil // says "not held", see above
	}
	held := c.heldBy(o, m.Key())
	if held == nil {
		return nil, nil //nolint:nilnil // says "not held", see above
	}
	if err := EndOf(held); errors.Is(err, driver.ErrLost) {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, Wrap("lock", m.Key(), err)
	}
	if o.Named {
		return nil, nil //nolint:nilnil // the engine itself re-enters named owners
	}
	return c.reenterGrant(ctx, held.Engine, o, m)
}

// reenterGrant adds a hold of o to g. On an engine with leases it renews first, in the caller's time: that costs one
// round trip, and asks the engine whether g still exists. Without an answer within half a renewal interval the window
// that was confirmed before still counts. It returns nil and no error if g has ended meanwhile.
func (c *Client) reenterGrant(
	ctx context.Context,
	g *core.EngineHold,
	o *core.Owner,
	m *core.Lock,
) (*core.Hold, error) {
	if c.HasLeases() {
		patient, cancel := context.WithTimeout(ctx, m.Terms.Renewal/2)
		defer cancel()
		err := c.renewNow(patient, g, m.Terms.Lease)
		if errors.Is(err, driver.ErrLost) {
			return nil, err
		}
		// The caller has given up; what was confirmed before is of no use to it.
		if err != nil && ctx.Err() != nil {
			return nil, Unavailable("lock", m.Key(), ctx.Err())
		}
	}
	c.Lock()
	defer c.Unlock()
	now := c.Now()
	c.Expire(g, now)
	// unlocked by another goroutine of o meanwhile
	if g.Phase == grants.Gone || !g.IsHeld() || g.Holder().Owner != o {
		return nil, nil //nolint:nilnil // says "not held", see reenter
	}
	l := m.NewHold(o)
	g.AddHold(l, now, now, true)
	return l, nil
}

// takeLock acquires the mutex for an owner that does not hold it. Machine.Mu is held from the look at the queue and the
// grants until join has put the waiter in line. Otherwise a grant that is released in between would pass by it.
func takeLock(ctx context.Context, m *core.Lock, o *core.Owner, try bool, at core.Call) (*core.Hold, error) {
	c := ClientOf(m)
	if err := ctx.Err(); err != nil {
		return nil, Wrap("lock", m.Key(), err)
	}
	if err := c.CheckOwner(o); err != nil {
		return nil, err
	}
	c.Lock()
	busy := c.busy(m)
	switch {
	// Named owners and candidates go to the engine, past the queue of this client. Only the engine can re-enter a named
	// owner, and each candidate brings a value of its own.
	case o != nil && o.Named || m.Terms.Single:
		if !try {
			return c.waitAlone(ctx, NewWaiter(m, o, at))
		}
		lease, err := tryOnce(ctx, m, o, false, at)
		if WouldRecall(err) {
			return recallLock(ctx, m, o, at, err)
		}
		return lease, err
	// A try does not stand in line, but may take what this process retains.
	case busy && try:
		return tryBusy(ctx, m, o, at)
	// Over a network the wait is asked for at once: a try before it would cost a round trip more.
	case busy || !try && !c.Traits.Local:
		return c.Join(ctx, NewWaiter(m, o, at))
	}
	return takeFree(ctx, m, o, try, at)
}

// busy reports whether this client has a grant of m that passes on inside the process, or somebody in line for one.
// The caller holds Machine.Mu.
func (c *Client) busy(m *core.Lock) bool {
	return c.Lines[m.LineKey()] != nil || c.Passing(m) != nil
}

// tryBusy takes the grant that this client retains, or says who is in the way. The caller holds Machine.Mu, which
// tryBusy gives up.
func tryBusy(ctx context.Context, m *core.Lock, o *core.Owner, at core.Call) (*core.Hold, error) {
	c := ClientOf(m)
	if l := m.NewHold(o); c.TakeOver(l, at.Start) {
		c.Unlock()
		return l, nil
	}
	if !c.busy(m) { // what was retained has ended, or was too near its end: nobody here is in the way
		return takeFree(ctx, m, o, true, at)
	}
	err := c.InTheWay(m)
	c.Unlock()
	return TryAlongside(m, o, at, err)
}

// takeFree asks the engine first, because no goroutine of this client has the lock or waits for it. After a refusal it
// waits, or says who holds the lock. The caller holds Machine.Mu, which takeFree gives up.
func takeFree(ctx context.Context, m *core.Lock, o *core.Owner, try bool, at core.Call) (*core.Hold, error) {
	c := ClientOf(m)
	lease, err := tryOnce(ctx, m, o, !try, at)
	switch {
	case !errors.Is(err, driver.ErrHeld):
		return lease, err
	case try && WouldRecall(err):
		return recallLock(ctx, m, o, at, err)
	case try:
		return TryAlongside(m, o, at, err)
	}
	c.Lock()
	return c.Join(ctx, NewWaiter(m, o, at))
}

// tryOnce asks the engine for m once. waits says that the caller waits after a refusal; a local engine then need not
// find out who holds the lock. The caller holds Machine.Mu, which tryOnce gives up.
func tryOnce(ctx context.Context, m *core.Lock, o *core.Owner, waits bool, at core.Call) (*core.Hold, error) {
	c := ClientOf(m)
	if c.Traits.Local {
		return tryLocal(ctx, m, o, waits, at)
	}
	c.Unlock()
	return c.AskAlone(ctx, NewWaiter(m, o, at), true)
}

// CheckOwner refuses an owner name on an engine without named owners, and one that is empty, too long or not UTF-8.
func (c *Client) CheckOwner(o *core.Owner) error {
	if o == nil || !o.Named {
		return nil
	}
	if reason, lacks := c.Traits.Lacking(driver.NamedOwners); lacks {
		return Wrap("lock as owner", driver.Key{Name: o.ID}, core.Unsupported(c.Traits, reason))
	}
	return ValidateName("owner", o.ID)
}

// A call that cannot be answered inside the process either joins the line of its lock (join) or asks the engine for
// itself alone (AskAlone, waitAlone). The line is in internal/core/line.go, the request in
// request.go, and the wait of the caller in wait.go.

// Join puts w at the end of its queue's line and waits there. The caller holds Machine.Mu, which join gives up.
//
// Both shortcuts before the line, overtaken and takeOver, must be looked at under the same Machine.Mu as the push.
// Otherwise a grant could come free between the look and the push, and w would ask the engine for a lock that its own
// process keeps.
func (c *Client) Join(ctx context.Context, w *core.Waiter) (*core.Hold, error) {
	m, o := w.Hold.Lock, w.Hold.Owner
	if c.Closed {
		c.Unlock()
		return nil, Wrap("lock", m.Key(), driver.ErrClosed)
	}
	if c.AlreadyInside(w) {
		c.Unlock()
		return w.Hold, nil
	}
	if c.TakeOver(w.Hold, w.Start) {
		c.Unlock()
		return w.Hold, nil
	}
	q := c.LineFor(m)
	w.Line, w.Ready = q, make(chan struct{})
	w.Announce = AnnouncementOf(ctx, w)
	q.Waiters.Push(w)
	// A deadlock search that runs from here on counts w as a wait of o, so this precedes suspectDeadlock.
	o.Waits.Add(1)
	c.suspectDeadlock(o)
	// What is in the way is known without the engine if a goroutine of this process holds the lock, or if the line has
	// asked already. The Observer is told at once then.
	switch g := c.Passing(m); {
	case g != nil:
		w.Blocker = g.Holder()
		w.MustWait(nil)
	case q.Waiters.First != w:
		w.MustWait(q.InTheWay())
	}
	f := q.PrepareRequest(nil)
	if f == nil {
		c.Unlock()
		return waitFor(ctx, w)
	}
	// Nobody asks for this line yet, so w does, in its own goroutine. The fetch still belongs to the line: see
	// fetch.lead.
	f.Leader = w
	// Counted under Machine.Mu, so that Close waits for the request.
	c.Background.Add(1)
	c.Unlock()
	return leadRequest(ctx, f, w)
}

// AskAlone asks the engine on behalf of w alone, past the queue of this client. It serves tries, which must not wait in
// a line, and named owners, which only the engine can tell apart across processes. For a read/write lock it returns
// ErrAgain if the owner has got a hold since w was made: then the caller asks beside that hold.
func (c *Client) AskAlone(ctx context.Context, w *core.Waiter, try bool) (*core.Hold, error) {
	c.Lock()
	if c.Closed {
		c.Unlock()
		return nil, Wrap("lock", w.Hold.Lock.Key(), driver.ErrClosed)
	}
	// Another goroutine of the same owner was quicker. The engine does not know that the two are one owner, so w would
	// wait behind it.
	if w.MayReenter() && c.LiveEngineHold(w.Hold.Owner, w.Hold.Lock.Key()) != nil {
		c.Unlock()
		return nil, core.ErrAgain
	}
	return c.ask(ctx, w, try)
}

// waitAlone is AskAlone for a call that waits: a named owner, or a candidate of an election. The caller holds
// Machine.Mu, which waitAlone gives up.
func (c *Client) waitAlone(ctx context.Context, w *core.Waiter) (*core.Hold, error) {
	switch {
	case c.Closed:
		c.Unlock()
		return nil, Wrap("lock", w.Hold.Lock.Key(), driver.ErrClosed)
	case c.AlreadyInside(w):
		c.Unlock()
		return w.Hold, nil
	}
	return c.ask(ctx, w, false)
}

// ask makes the request of AskAlone and waitAlone and waits for its answer. The caller holds Machine.Mu, which ask
// gives up, and has seen that the client is open.
func (c *Client) ask(ctx context.Context, w *core.Waiter, try bool) (*core.Hold, error) {
	// An owner that was made for this call is known to no other goroutine. Its waits need no count, because nobody else
	// can wait as this owner. And with a count each grant would search all waiters for others of it.
	shared := !w.Fresh
	f := c.newRequest(w, try)
	f.Waiter, w.Request = w, f
	w.Announce = AnnouncementOf(ctx, w)
	// From here on Close, a deadlock search and a grant to the same owner find w, although it stands in no line.
	c.LinesOfOne[w] = struct{}{}
	c.Background.Add(1)
	w.Ready = make(chan struct{})
	if shared {
		w.Hold.Owner.Waits.Add(1)
		defer w.Hold.Owner.Waits.Add(-1)
	}
	if !try {
		c.suspectDeadlock(w.Hold.Owner)
	}
	c.Unlock()
	return leadRequest(ctx, f, w)
}

// InTheWay describes to a try who of this process holds m, or is about to hold it. It names the holder here, or else
// whoever the engine has named to the line; if neither is known, only the client. The caller holds Machine.Mu.
func (c *Client) InTheWay(m *core.Lock) *driver.HeldError {
	if g := c.Passing(m); g != nil && (g.IsHeld() || g.CooldownEnd() < trust.Never) {
		return heldErrorOf(g.Holder())
	}
	if q := c.Lines[m.LineKey()]; q != nil && q.InTheWay() != nil {
		held := *q.InTheWay()
		return &held
	}
	return &driver.HeldError{Kind: m.Key().Kind, Name: m.Key().Name, Client: c.Config.ClientName}
}

// TryAlongside turns the refusal of a try into re-entry if another goroutine of the same owner was quicker. Otherwise a
// try could be refused because of its own owner. It returns err unchanged if o has no live grant.
func TryAlongside(m *core.Lock, o *core.Owner, at core.Call, err error) (*core.Hold, error) {
	if o == nil {
		return nil, err
	}
	c := ClientOf(m)
	c.Lock()
	defer c.Unlock()
	g := c.LiveEngineHold(o, m.Key())
	if g == nil {
		return nil, err
	}
	l := m.NewHold(o)
	g.AddHold(l, at.Start, c.Now(), true)
	return l, nil
}

// A try on a local engine (memory, files). The engine answers at once, so the call is made in the caller's goroutine.
// Nothing of what a wait needs is made for it: no waiter, fetch, channel or context. Most locks of such an engine are
// taken in this way, and the core's own work is a large part of what they cost. A refusal goes on to join.

// tryLocal asks a local engine for m, once. waits says that the caller will wait after a refusal, so that the engine
// need not find out who holds the lock. The caller holds Machine.Mu, which tryLocal gives up.
func tryLocal(ctx context.Context, m *core.Lock, o *core.Owner, waits bool, at core.Call) (*core.Hold, error) {
	c := ClientOf(m)
	if c.Closed {
		c.Unlock()
		return nil, Wrap("lock", m.Key(), driver.ErrClosed)
	}
	c.Background.Add(1) // under Machine.Mu, so that Close waits for what is under way
	defer c.Background.Done()
	c.Unlock()
	g, l := newLocalHold(m, o)
	// The driver is called without Machine.Mu, as everywhere: files have to be read.
	answer, err := askLocally(g, l.Owner, waits)
	c.Lock()
	now := c.Now()
	switch gone := errors.Is(err, driver.ErrLost); {
	case gone || err == nil && (g.Phase == grants.Revoked || c.ExpiredOnArrival(answer, now)):
		return tryAgain(ctx, m, l, g, gone, at)
	case err != nil:
		// The lock may have been taken although the engine reported an error.
		if !driver.IsDefinite(err) {
			g.ReleaseInBackground(true)
		}
		c.Unlock()
		return nil, Explain(m.Key(), err)
	// Close has ended everything that it found, and this hold came after that.
	case c.Closed:
		g.ReleaseInBackground(false)
		c.Unlock()
		return nil, Wrap("lock", m.Key(), driver.ErrClosed)
	}
	old := c.Passing(m)
	g.Accept(answer, now)
	// With an older grant of this lock in the process only one of the two may serve the line.
	g.Alone = l.Owner.Named || old != nil
	g.AddHold(l, at.Start, now, false)
	g.AddSameOwner()
	c.Unlock()
	return l, nil
}

// tryAgain asks once more after a grant that was over before it could be used. An operator broke it, or this process
// stood still for longer than the lease. gone says that the engine reported that itself. The caller holds Machine.Mu,
// which tryAgain gives up.
func tryAgain(
	ctx context.Context,
	m *core.Lock,
	l *core.Hold,
	g *core.EngineHold,
	gone bool,
	at core.Call,
) (*core.Hold, error) {
	g.ReleaseInBackground(gone)
	ClientOf(m).Unlock()
	return ClientOf(m).AskAlone(ctx, &core.Waiter{Hold: l, Call: at}, true)
}

// newLocalHold returns a grant that must be asked for and its first hold, for o or for a new owner. All three are one
// allocation: most grants see no other hold, so they live equally long.
func newLocalHold(m *core.Lock, o *core.Owner) (*core.EngineHold, *core.Hold) {
	first := &struct {
		engine core.EngineHold
		lease  core.Lease
		owner  core.Owner
	}{}
	g := &first.engine
	*g = *m.NewEngineHold(ClientOf(m).NewID())
	if o == nil {
		first.owner.ID = g.ID // one string for both
		o = &first.owner
	}
	return g, first.lease.Begin(m, o)
}

var (
	// requests and releases keep the structs with which a local engine is asked. It keeps no pointer to them once it
	// has answered, so each can be used again at once.
	requests = sync.Pool{New: func() any { return new(driver.Request) }}
	releases = sync.Pool{New: func() any { return new(driver.Release) }}
)

// askLocally tries to get g for o; waits is as in tryLocal. Only the client's own end cancels it: a local engine
// answers at once.
func askLocally(g *core.EngineHold, o *core.Owner, waits bool) (driver.Grant, error) {
	c := ClientOf(g.Lock)
	r := requests.Get().(*driver.Request)
	*r = DriverRequest(g.Lock, g.ID, o)
	r.Try, r.SkipHolder, r.Lost = true, waits, LossOf(g)
	askForRecalls(g, r)
	answer, err := c.Driver.Acquire(c.renewCtx, r)
	*r = driver.Request{}
	requests.Put(r)
	return answer, err
}

// releaseLocally gives g back to a local engine, which keeps the lock closed for keep.
func releaseLocally(g *core.EngineHold, keep time.Duration) error {
	c := ClientOf(g.Lock)
	r := releases.Get().(*driver.Release)
	*r = *g.ReleaseRequest()
	r.Keep = keep
	err := c.Driver.Release(c.releaseCtx, r)
	*r = driver.Release{}
	releases.Put(r)
	return err
}

// A try that another client's retention refuses waits for a moment instead: the engine has asked that client to give
// the lock back; release.go is the other side.

// WouldRecall reports whether err refused a try because of a holder whose client may merely retain the lock.
func WouldRecall(err error) bool {
	var held *driver.HeldError
	return errors.As(err, &held) && held.Retains && driver.IsDefinite(err)
}

// recallLock continues a try after WouldRecall. It waits in the line, for as long as a recall takes: 50 ms, or four
// round trips if that is more. If the lock has not come by then it is really held, and recall returns refused. So a try
// of a lock that such a client really holds takes that long.
func recallLock(ctx context.Context, m *core.Lock, o *core.Owner, at core.Call, refused error) (*core.Hold, error) {
	c := ClientOf(m)
	most := max(RecallWait, 4*c.Reading().Since(at.Start)) // four round trips: the try was one
	bounded, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	w := NewWaiter(m, o, at)
	c.Lock()
	join := c.Join
	if o != nil && o.Named || m.Terms.Single {
		join = c.waitAlone
	}
	lease, err := join(bounded, w)
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		return nil, refused
	}
	return lease, err
}

// DoUnder is Do of every kind of lock. A function that is missing is an error before anything is taken.
func DoUnder(ctx context.Context, m *core.Lock, fn func(ctx context.Context) error) error {
	if err := mayAcquire(ctx, m); err != nil {
		return err
	}
	if fn == nil {
		return Wrap("do under", m.Key(), ErrNoFunction)
	}
	lease, err := Acquire(ctx, m, false)
	if err != nil {
		return err
	}
	return doHolding(ctx, lease, fn)
}

// TryDoUnder is TryDo of every kind of lock.
func TryDoUnder(ctx context.Context, m *core.Lock, fn func(ctx context.Context) error) (bool, error) {
	lease, err := Acquire(ctx, m, true)
	if errors.Is(err, driver.ErrHeld) && driver.IsDefinite(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if fn == nil { // a caller that only asks whether the work would be skipped has got its answer above
		return false, errors.Join(Wrap("do under", m.Key(), ErrNoFunction), UnlockInTime(ctx, lease))
	}
	return true, doHolding(ctx, lease, fn)
}
