package sim

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

// engine is the far end of all links: the reference engine, what a server adds to it (a waiter lives by its
// heartbeats), and the flaws.
type engine struct {
	w     *world
	admin *memlock.Driver // makes the peers, and lists

	mu     sync.Mutex                    // guards what is below
	waits  map[string]context.CancelFunc // ends the wait of the newest copy of a request, by label
	grants int
}

func newEngine(w *world) *engine {
	return &engine{w: w, admin: memlock.New(nil), waits: make(map[string]context.CancelFunc)}
}

// acquire serves one copy of a request. It returns when the copy is answered for good, or superseded by a newer one,
// or when no newer one came in time.
func (e *engine) acquire(m *message, a *asking, give *driver.Release) {
	l, id, arrived := m.l, m.l.label(a.r.ID), time.Now()
	ctx, cancel := context.WithTimeout(e.w.ctx, waiterLife)
	defer cancel()
	own := *a.r
	if e.w.conf.flaw == forgetsIDs && e.w.truth.isDead(id) {
		own.ID += "-again"
	}
	queued := false
	own.Waiting = func(held *driver.HeldError) {
		if !queued {
			queued = true
			e.supersede(id, cancel)
		}
		m.toProcess("wait", func() { a.hear(answer{held: held}) })
	}
	own.Lost = func(reason driver.LostReason, cause error) {
		m.toProcess("lost "+string(reason), func() { a.lose(reason, cause) })
	}
	g, err := e.enter(ctx, l, &own, give, &queued)
	switch {
	case err == nil:
		e.w.truth.granted(l, id, &own, g)
		g.Sent = g.Sent.Add(m.sent.Sub(arrived)) // by the clock difference that this very exchange shows, at worst
		m.toProcess("grant", func() { a.hear(answer{grant: e.deliver(g)}) })
	case errors.Is(err, driver.ErrClosed), ctx.Err() != nil && errors.Is(err, ctx.Err()):
		// The connection is gone, or the copy is: nobody is told.
	default:
		if errors.Is(err, driver.ErrLost) {
			e.w.counts.hit("refused late copy")
		}
		m.toProcess("refusal", func() { a.hear(answer{err: err}) })
	}
}

// supersede ends the wait of an older copy, which shares its place with the newer one.
func (e *engine) supersede(id string, newer context.CancelFunc) {
	e.mu.Lock()
	older := e.waits[id]
	e.waits[id] = newer
	e.mu.Unlock()
	if older != nil {
		older()
	}
}

// enter is the step itself, and the wait.
func (e *engine) enter(
	ctx context.Context, l *link, r *driver.Request, give *driver.Release, queued *bool,
) (driver.Grant, error) {
	g, err := driver.Grant{}, error(nil)
	if give == nil {
		g, err = l.peer.Acquire(ctx, r)
	} else {
		// Before the step, because who waits is granted in the same instant.
		restore := e.w.truth.end(l.label(give.ID))
		g, err = l.peer.Requeue(ctx, give, r)
		if err != nil && !*queued { // refused, so give is what it was
			restore()
		}
	}
	if err == nil && e.w.conf.flaw == tokensGoBack {
		e.mu.Lock()
		e.grants++
		if e.grants%7 == 0 {
			g.Token -= 60_000_000
		}
		e.mu.Unlock()
	}
	return g, err
}

// deliver is where a grant reaches the process.
func (e *engine) deliver(g driver.Grant) driver.Grant {
	if e.w.conf.flaw == trustsFromReply {
		g.Sent = time.Now()
	}
	return g
}

// release serves a release or an undo.
func (e *engine) release(l *link, r *driver.Release) error {
	id := l.label(r.ID)
	if r.Undo && e.w.truth.isLive(id) {
		e.w.counts.hit("undone grant")
	}
	restore := e.w.truth.end(id)
	var err error
	if !r.Undo || e.w.conf.flaw != undoesNothing {
		err = l.peer.Release(e.w.ctx, r)
	}
	if errors.Is(err, driver.ErrClosed) {
		restore()
		return err
	}
	if err != nil && e.w.conf.flaw == freesByName {
		e.freeWhoever(r.Key)
	}
	if err == nil || r.Undo { // who hears that there was nothing has no promise about late copies
		e.w.truth.buried(id, r)
	}
	if e.w.truth.remains(id, e.list(r.Name)) {
		e.w.violate(residue, "%s is over and still holds %s", id, r.Name)
	}
	return err
}

// freeWhoever is the flaw of releasing by name.
func (e *engine) freeWhoever(key driver.Key) {
	if victim := e.w.truth.holder(key.Name); victim != nil {
		_ = victim.l.peer.Release(e.w.ctx, &driver.Release{Key: key, ID: victim.id})
	}
}

// renew serves a batch.
func (e *engine) renew(l *link, batch []driver.Renewal) []error {
	said := make([]error, len(batch))
	l.peer.Renew(e.w.ctx, batch, func(i int, err error) {
		if errors.Is(err, driver.ErrLost) {
			e.w.counts.hit("renewal of what was lost")
			if e.w.conf.flaw == revivesExpired {
				err = nil
			}
		}
		said[i] = err
		if err == nil {
			e.w.truth.renewed(l.label(batch[i].ID), batch[i].Lease)
		}
	})
	return said
}

// breakHolds serves a break.
func (e *engine) breakHolds(l *link, key driver.Key, token uint64) error {
	restore := e.w.truth.breakBlock(key.Name, token)
	err := l.peer.Break(e.w.ctx, key, token)
	if err != nil {
		restore()
		return err
	}
	e.w.counts.hit("broken lock")
	return nil
}

// list returns the locks in use.
func (e *engine) list(prefix string) []driver.LockInfo {
	var list []driver.LockInfo
	for info, err := range e.admin.Locks(e.w.ctx, prefix) {
		if err == nil {
			list = append(list, info)
		}
	}
	return list
}
