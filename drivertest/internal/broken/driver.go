package broken

import (
	"context"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// The driver: one client of the store, from a request to its grant. The defects stand where the sound engine does the
// right thing.

// Driver is one client of a Store.
type Driver struct {
	s    *Store
	deaf bool // it has missed an answer (SilenceIsForGood); guarded by Store.mu
}

// Client returns another client of the store.
func (s *Store) Client() *Driver { return &Driver{s: s} }

var (
	_ driver.Driver    = (*Driver)(nil)
	_ driver.Renewer   = (*Driver)(nil)
	_ driver.Requeuer  = (*Driver)(nil)
	_ driver.Converter = (*Driver)(nil)
	_ driver.Inspector = (*Driver)(nil)
	_ driver.Breaker   = (*Driver)(nil)
)

// Traits describes the engine.
func (d *Driver) Traits() driver.Traits {
	return driver.Traits{
		Engine: "broken", Lifetime: driver.Leases, Local: true, Resumes: true,
		Kinds: []driver.Kind{
			driver.KindMutex, driver.KindRWMutex, driver.KindSemaphore, driver.KindElection,
			driver.KindLatch, driver.KindCond,
		},
	}
}

// Close has nothing to give back.
func (d *Driver) Close() error { return nil }

// Acquire waits in the queue of the lock.
func (d *Driver) Acquire(ctx context.Context, r *driver.Request) (driver.Grant, error) {
	if err := d.reach(ctx); err != nil {
		return driver.Grant{}, err
	}
	e, held, err := d.ask(r)
	if err != nil {
		return driver.Grant{}, err
	}
	return d.await(ctx, e, held, r)
}

// await waits until e is granted or ctx ends. held is nil if e was granted at once.
func (d *Driver) await(ctx context.Context, e *entry, held *driver.HeldError, r *driver.Request) (driver.Grant, error) {
	if held != nil && r.Waiting != nil {
		r.Waiting(held)
	}
	select {
	case <-e.granted:
		return e.grant, e.refused
	case <-ctx.Done():
	}
	d.heed(e)
	d.s.isLeft(e)
	if d.s.defect == CancelEndsHolds && e.beside == "" {
		d.s.endAllOf(d)
	}
	return driver.Grant{}, ctx.Err() // its place in the queue stays: only Undo takes it away
}

// ask grants r, queues it (then held is not nil) or refuses it, in one step.
func (d *Driver) ask(r *driver.Request) (e *entry, held *driver.HeldError, err error) {
	s := d.s
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lock(r.Key)
	s.evict(l)
	if e, held, err := s.known(l, r); e != nil || err != nil {
		return e, held, err
	}
	if err := l.check(r); err != nil {
		return nil, nil, err
	}
	return s.enter(l, &entry{r: *r, client: d, since: time.Now(), granted: make(chan struct{})})
}

// known answers a request that came before: refused if it is over, and otherwise the same entry.
func (s *Store) known(l *lock, r *driver.Request) (e *entry, held *driver.HeldError, err error) {
	if s.gone[r.ID] {
		return nil, nil, &driver.LostError{Kind: r.Kind, Name: r.Name, Reason: driver.LostExpired}
	}
	if e := find(l.holders, r.ID); e != nil && !s.forgets(e) {
		s.copied(l, e)
		return e, nil, nil
	}
	if e := find(l.waiters, r.ID); e != nil {
		s.resumes(l, e)
		return e, s.held(l, r.Key), nil
	}
	return nil, nil, nil
}

// forgets reports whether a copy of the request of e, which holds, is taken for another request.
func (s *Store) forgets(e *entry) bool {
	if e.left {
		return s.defect == ResumeForgetsGrant
	}
	return s.defect == RetryIsNewRequest && e.beside == "" && e.by != condWait && !e.r.Retains
}

// enter admits e or queues it. A Try that would have to wait is refused.
func (s *Store) enter(l *lock, e *entry) (*entry, *driver.HeldError, error) {
	l.limit = e.r.Limit
	if s.reentersAny(l, e) || s.fits(l, e) && s.needNotQueue(l, &e.r) {
		s.admit(l, e)
		return e, nil, nil
	}
	s.recall(l, &e.r)
	if e.r.Try {
		return nil, nil, s.held(l, e.r.Key)
	}
	e.waited = true
	l.waiters = append(l.waiters, e)
	s.serve(l) // a crowd may get in
	return e, s.held(l, e.r.Key), nil
}

// needNotQueue reports whether r may be granted at once if it fits.
func (s *Store) needNotQueue(l *lock, r *driver.Request) bool {
	return len(l.waiters) == 0 ||
		s.defect == TryOvertakes && r.Try && r.Kind == driver.KindMutex ||
		s.defect == SmallOvertakesBig && r.Kind == driver.KindSemaphore
}

// check refuses what cannot be granted beside the limit in use.
func (l *lock) check(r *driver.Request) error {
	if r.Mode == driver.Exclusive || r.Limit == 0 {
		return nil
	}
	if r.Weight > r.Limit || l.limit != r.Limit && len(l.holders)+len(l.waiters) > 0 {
		return driver.ErrConflict
	}
	return nil
}

// Release ends the hold with the ID, or undoes the request.
func (d *Driver) Release(ctx context.Context, r *driver.Release) error {
	if err := d.reach(ctx); err != nil {
		return err
	}
	s := d.s
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lock(r.Key)
	s.evict(l)
	h := find(l.holders, r.ID)
	if h == nil && s.defect == ReleaseIgnoresID && !r.Undo {
		if i := slices.IndexFunc(l.holders, func(h *entry) bool { return h.client == d }); i >= 0 {
			h = l.holders[i]
		}
	}
	switch {
	case r.Undo:
		d.undo(l, r, h)
		return nil
	case h == nil || h.kept:
		return &driver.LostError{Kind: r.Kind, Name: r.Name, Reason: driver.LostExpired}
	case r.Keep > 0:
		h.kept, h.until = true, time.Now().Add(r.Keep)
		s.arm(l)
		s.tell(l)
		return nil
	}
	s.end(l, h)
	if s.defect == ReleasedComesBack && h.beside == "" && h.by != bundle {
		delete(s.gone, r.ID)
	}
	return nil
}

// undo takes away a hold or a place in the queue, and refuses the ID from now on.
func (d *Driver) undo(l *lock, r *driver.Release, h *entry) {
	s := d.s
	s.gone[r.ID] = s.defect != UndoIsForgotten
	s.undoCond(l, r.ID)
	if w := find(l.waiters, r.ID); w != nil && !s.leavesQueued(w) {
		s.letInBehind(l, w)
		l.waiters = remove(l.waiters, w)
		s.serve(l)
	}
	if h != nil {
		s.end(l, h)
	}
}

// letInBehind is UndoLetsInNext: the next one waited for w, which is undone, and takes its end for that of the holder.
func (s *Store) letInBehind(l *lock, w *entry) {
	if i := slices.Index(l.waiters, w) + 1; s.defect == UndoLetsInNext && i < len(l.waiters) && w.by == acquire &&
		!w.resumed {
		next := l.waiters[i]
		l.waiters = remove(l.waiters, next)
		s.admit(l, next)
	}
}

// leavesQueued reports whether undo overlooks w.
func (s *Store) leavesQueued(w *entry) bool {
	switch {
	case w.by == condWait:
		return false
	case w.by == requeue:
		return s.defect == RequeueStaysQueued
	case w.resumed:
		return s.defect == ResumedStaysQueued
	}
	return s.defect == UndoLeavesQueued && !w.hung && w.beside == ""
}

// Renew makes the holds of the batch last longer.
func (d *Driver) Renew(ctx context.Context, batch []driver.Renewal, done func(int, error)) {
	err := d.reach(ctx)
	for i, r := range batch {
		switch {
		case err == nil:
			done(i, d.renew(r))
		case d.s.defect == SilenceIsLoss:
			done(i, &driver.LostError{Kind: r.Kind, Name: r.Name, Reason: driver.LostExpired})
		default:
			done(i, err)
		}
	}
}

// renew makes one hold last longer.
func (d *Driver) renew(r driver.Renewal) error {
	s := d.s
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lock(r.Key)
	s.evict(l)
	h := find(l.holders, r.ID)
	if h == nil && s.defect == RenewRevives && len(l.holders) == 0 {
		if h = find(l.expired, r.ID); h != nil {
			l.holders = append(l.holders, h)
		}
	}
	if h == nil || h.kept {
		return &driver.LostError{Kind: r.Kind, Name: r.Name, Reason: driver.LostExpired}
	}
	h.woken = false // its client knows of the grant
	s.prolong(h, &r)
	if !h.retained || s.defect != ShortWakesNobody {
		s.arm(l)
	}
	s.recallByAnswer(l, h)
	return nil
}

// A store that answers nobody, and the defects of drivers that cannot bear it.

// Hang makes the store answer nobody until resume is called. Waits in its queues go on.
func (s *Store) Hang() (resume func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	hung := make(chan struct{})
	s.hung = hung
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.hung = nil
		close(hung)
	}
}

// answers returns a channel that is closed when the store answers again, or nil if it does now.
func (s *Store) answers() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hung
}

// reach waits until the store answers, and every call begins with it. An error says that the store did not answer
// before the end of ctx.
func (d *Driver) reach(ctx context.Context) error {
	answers := d.s.answers()
	if answers == nil {
		return d.sound(ctx)
	}
	if d.s.defect == IgnoresContexts {
		<-answers
		return nil
	}
	select {
	case <-answers:
		return d.sound(ctx)
	case <-ctx.Done():
	}
	d.s.mu.Lock()
	defer d.s.mu.Unlock()
	d.deaf = d.s.defect == SilenceIsForGood
	return &driver.UnavailableError{Err: ctx.Err()}
}

// sound refuses a call that cannot be made: the connection is used up, or ctx has ended.
func (d *Driver) sound(ctx context.Context) error {
	d.s.mu.Lock()
	defer d.s.mu.Unlock()
	if d.deaf {
		return &driver.UnavailableError{}
	}
	return ctx.Err()
}

// heed notes that the context of a wait has ended. If the store hangs then, the wait cannot be taken back.
func (d *Driver) heed(e *entry) {
	answers := d.s.answers()
	if answers == nil {
		return
	}
	if d.s.defect == IgnoresContexts {
		<-answers
	}
	d.s.mu.Lock()
	defer d.s.mu.Unlock()
	e.hung = true
}
