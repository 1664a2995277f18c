package interlock

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/interlock-go/interlock/driver"
)

// A Multi in one step: where all of its locks are one client's, and that one's engine can, they are tried together,
// before anything else. Nothing is queued for that and nobody is overtaken, so who is refused has lost a round trip and
// nothing more, and then stands in the lines of those locks one after the other, as if it had not tried.

// errOneByOne says that the locks are to be taken one after the other.
var errOneByOne = errors.New("not in one step")

// bundle is the locks of a Multi while they are asked for in one step.
type bundle struct {
	c        *Client
	locks    []*Mutex // in the order of taking
	o        *owner
	start    instant
	grants   []*grant
	requests []*driver.Request
}

// takeTogether takes locks, which are all of m in the order of taking, into all in one step. It returns
// errOneByOne if they are to be taken one after the other: they cannot be had in one step, or not all of them are
// free and the caller wants to wait.
func (m *Multi) takeTogether(ctx context.Context, all *MultiLease, locks []*Mutex, try bool) error {
	b := bundle{c: locks[0].c, locks: locks, o: all.owner}
	if !b.mayTry(ctx) {
		return errOneByOne
	}
	b.start = b.c.reading()
	leases, err := b.take(ctx)
	if errors.Is(err, ErrHeld) && driver.IsDefinite(err) && (!try || b.owned()) {
		return errOneByOne
	}
	var ended error
	for i, lease := range leases { // all of them before any is told, so that all are given back after a panic
		ended = cmp.Or(ended, all.add(m.given[i], lease))
	}
	b.tell(ctx, leases, err)
	return cmp.Or(err, ended)
}

// mayTry reports whether all locks are one client's whose engine can, and the owner has none of them yet: what it has
// it re-enters, one by one.
func (b *bundle) mayTry(ctx context.Context) bool {
	if len(b.locks) < 2 || b.c.multi == nil || ctx.Err() != nil || b.c.checkOwner(b.o) != nil {
		return false // what is wrong is reported by the first that is taken
	}
	if slices.ContainsFunc(b.locks, func(l *Mutex) bool { return l.c != b.c }) {
		return false
	}
	return !b.owned()
}

// owned reports whether the owner has one of the locks, or has lost it and not unlocked it yet.
func (b *bundle) owned() bool {
	if !b.o.holdsAny() {
		return false
	}
	return slices.ContainsFunc(b.locks, func(m *Mutex) bool { return b.o.has(m.c, m.key()) })
}

// take asks the engine, unless this process knows the answer.
func (b *bundle) take(ctx context.Context) ([]*Lease, error) {
	c := b.c
	if err := b.begin(); err != nil {
		return nil, err
	}
	defer c.background.Done()
	b.prepare()
	bounded := callContext{user: ctx, base: c.asks}
	b.o.waits.Add(1) // so that nobody takes it for stuck meanwhile
	answers, err := c.multi.AcquireAll(&bounded, b.requests)
	b.o.waits.Add(-1)
	bounded.end()
	c.lock()
	defer c.unlock()
	if err != nil {
		return nil, b.refused(err)
	}
	return b.granted(answers)
}

// atOnce is how many locks of a Multi are looked at before the client's other calls have their turn: about a tenth of a
// millisecond's work.
const atOnce = 64

// yieldMutex gives Client.mu to others, if so many have been looked at. The caller holds Client.mu.
func (b *bundle) yieldMutex(looked int) {
	if looked%atOnce == atOnce-1 {
		b.c.unlock()
		b.c.lock()
	}
}

// begin says why the engine need not be asked, or else counts the request as background.
func (b *bundle) begin() error {
	c := b.c
	c.lock()
	defer c.unlock()
	for i, l := range b.locks {
		b.yieldMutex(i)
		// which the engine would refuse, and who takes it alone does not
		if g := c.passing(l); g != nil && g.retained() != nil {
			return errOneByOne
		}
		if !b.alone(l) && (c.queues[l.queueKey()] != nil || c.passing(l) != nil) { // of others the engine itself knows
			return c.inTheWay(l)
		}
	}
	if c.closed {
		return wrap("lock", b.locks[0].key(), ErrClosed)
	}
	c.background.Add(1) // under Client.mu, so that Close waits for what is under way
	return nil
}

// alone reports that the request for l has to do with nobody else's in this process; see Mutex.take.
func (b *bundle) alone(l *Mutex) bool { return b.o.named || l.p.single }

// prepare makes the requests.
func (b *bundle) prepare() {
	b.grants, b.requests = make([]*grant, len(b.locks)), make([]*driver.Request, len(b.locks))
	for i, l := range b.locks {
		g := &grant{m: l, id: b.c.newID(), asked: l.p.lease, index: -1}
		r := l.request(g.id, b.o)
		r.Try, r.Lost = true, g.lostByEngine
		b.grants[i], b.requests[i] = g, &r
	}
}

// refused decides what the engine's err means. The caller holds Client.mu.
func (b *bundle) refused(err error) error {
	var held *HeldError
	definite := driver.IsDefinite(err)
	switch {
	case definite && errors.As(err, &held):
		return held
	case definite: // why, and which of them, is told by who takes them one by one
		return errOneByOne
	}
	b.settle(0, true)
	switch {
	case errors.Is(err, ErrLost): // an operator broke one in the same instant
		return errOneByOne
	case b.c.closed:
		return wrap("lock", b.locks[0].key(), ErrClosed)
	}
	return explain(b.locks[0].key(), err)
}

// granted takes in the engine's answers. The caller holds Client.mu, which is given to others now and then.
func (b *bundle) granted(answers []driver.Grant) ([]*Lease, error) {
	c := b.c
	leases := make([]*Lease, 0, len(b.grants))
	for i, g := range b.grants {
		b.yieldMutex(i)
		now := c.now()
		switch {
		case c.closed: // it has given back what was taken in
			b.settle(i, false)
			return nil, wrap("lock", b.locks[0].key(), ErrClosed)
		case g.phase == revoked || g.tooLate(answers[i], now): // it had ended before anybody got it
			b.settle(i, true)
			for _, l := range leases {
				l.decline()
			}
			return nil, errOneByOne
		}
		old := c.passing(g.m)
		g.taken(answers[i], now)
		g.alone = b.alone(g.m) || old != nil
		l := g.m.newLease(b.o)
		leases = append(leases, l)
		g.admit(l, b.start, now, false)
		g.admitOthers()
	}
	return leases, nil
}

// settle gives back whatever the requests from that on have left. The caller holds Client.mu.
func (b *bundle) settle(from int, undo bool) {
	for _, g := range b.grants[from:] {
		g.settle(undo)
	}
}

// tell tells the Observer how it went, unless that goes on.
func (b *bundle) tell(ctx context.Context, leases []*Lease, err error) {
	for _, l := range leases {
		l.m.tellAcquired(ctx, l, call{})
	}
	if err == nil || errors.Is(err, errOneByOne) {
		return
	}
	at := 0
	if held := (*HeldError)(nil); errors.As(err, &held) {
		at = max(0, slices.IndexFunc(b.locks, func(l *Mutex) bool { return l.key().Name == held.Name }))
	}
	b.locks[at].tellFailed(ctx, b.o, call{start: b.start}, err)
}
