package mysqllock

import (
	"context"
	sqldriver "database/sql/driver"
	"unicode/utf8"

	"github.com/interlock-go/interlock/driver"
)

// phase is how far a request has come.
type phase uint8

const (
	asking    phase = iota // a shared connection tries for it, or another request for the same lock does and this one is in line
	waiting                // a goroutine waits for it, see wait.go
	held                   // granted
	releasing              // being given back
	doubt                  // its connection has ended, and the server may not know yet
	over                   // nothing is left of it
)

// entry is one request, from Acquire until it is given back. What happens to it in the server goes on whatever becomes of
// the caller: who gives up leaves it until it is undone, as the contract of [driver.Driver] says.
type entry struct {
	d    *Driver
	r    driver.Request
	id   lockID
	lock string
	stop chan struct{} // closed when a wait is to end

	// Guarded by Driver.mu.
	phase    phase
	ending   bool  // undone, or the driver is closed: if it is granted it is given back
	c        *conn // on which it is asked for, waits, or is held
	token    uint64
	tokens   int
	err      error             // why it was not granted, once settled
	told     *driver.HeldError // who was in the way, as last told
	looked   bool              // the wait has seen and told who is in the way
	credited bool              // a Release has returned that it ended the hold
	epitaph  epitaph

	settled chan struct{} // closed when it has been granted or refused
	over    chan struct{} // closed when nothing is left of it
}

func (d *Driver) newEntry(r *driver.Request) *entry {
	id := idOf(d.scope, r.Key)
	return &entry{
		d: d, r: *r, id: id, lock: id.lock(), stop: make(chan struct{}),
		settled: make(chan struct{}), over: make(chan struct{}),
	}
}

// settle says to the caller how it went. The caller of settle holds Driver.mu.
func (e *entry) settle(err error) {
	select {
	case <-e.settled:
	default:
		e.err = err
		close(e.settled)
	}
}

// tell says to the caller who is in the way. It is called without Driver.mu.
func (e *entry) tell(h *driver.HeldError) {
	e.d.mu.Lock()
	if e.told != nil && *e.told == *h || e.ending {
		e.d.mu.Unlock()
		return
	}
	e.told = h
	waiting := e.r.Waiting
	e.d.mu.Unlock()
	if waiting != nil {
		waiting(h)
	}
}

// tellSeen is tell of what a look at the server has found.
func (e *entry) tellSeen(h *driver.HeldError) {
	e.tell(h)
	e.d.mu.Lock()
	defer e.d.mu.Unlock()
	e.looked = true
}

// grant is what the caller gets.
func (e *entry) grant() driver.Grant {
	return driver.Grant{
		Token: e.token, Tokens: e.tokens, Nonce: e.r.ID, // an ID is never used twice
		Sent: e.c.Confirmed(), Lease: e.d.opts.Timeout, Session: e.c,
	}
}

// heldError describes a hold of this process to others of it.
func (e *entry) heldError() *driver.HeldError {
	return &driver.HeldError{Kind: e.r.Kind, Name: e.r.Name, Owner: e.r.Owner, Client: e.r.Client, Token: e.token}
}

const (
	// mostTokens bounds a block: a second's worth of the clock.
	mostTokens = 1_000_000

	// mostText is what the columns for owner, client and label take.
	mostText = 255
)

// grantArgs are the arguments of stmtTry and stmtMint.
func (e *entry) grantArgs() []sqldriver.NamedValue {
	r := &e.r
	tokens := min(max(r.Tokens, 1), mostTokens)
	return named(e.id[:], string(r.Kind), []byte(r.Name), int64(tokens-1),
		[]byte(clip(r.Owner)), []byte(clip(r.Client)), []byte(clip(r.Label)), e.lock)
}

// clip shortens what only people read to what its column takes, without cutting a character in two.
func clip(s string) string {
	if len(s) <= mostText {
		return s
	}
	end := mostText
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}

// Acquire asks for the lock on a shared connection, and if it is held waits for it in the server on a connection of the
// pool. See the package documentation for what that costs.
func (d *Driver) Acquire(ctx context.Context, r *driver.Request) (driver.Grant, error) {
	e, err := d.enter(ctx, r)
	if err != nil {
		return driver.Grant{}, err
	}
	select {
	case <-e.settled:
		return d.answer(e)
	case <-ctx.Done():
		return driver.Grant{}, ctx.Err()
	}
}

// answer is what becomes of a request that is settled.
func (d *Driver) answer(e *entry) (driver.Grant, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case e.err != nil:
		return driver.Grant{}, e.err
	case e.phase != held: // it has ended before anybody got it
		return driver.Grant{}, e.lostError()
	}
	return e.grant(), nil
}

// enter finds what there is of the request already, or begins with it.
func (d *Driver) enter(ctx context.Context, r *driver.Request) (*entry, error) {
	if err := supported(r); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	d.mu.Lock()
	e, next, err := d.join(r)
	var told *driver.HeldError
	if e != nil {
		told = e.told
	}
	d.mu.Unlock()
	if next != nil {
		next()
	} else if told != nil && r.Waiting != nil {
		r.Waiting(told)
	}
	return e, err
}

// join is enter under Driver.mu. It returns what is to be done without it.
func (d *Driver) join(r *driver.Request) (e *entry, next func(), err error) {
	if d.closed {
		return nil, nil, errClosed
	}
	if e := d.entries[r.ID]; e != nil {
		switch {
		case e.r.Key != r.Key || e.ending || e.phase == releasing:
			return nil, nil, gone(r.Key)
		case e.phase == doubt:
			return nil, nil, unavailable("acquire", r.Name, errLost)
		}
		if r.Waiting != nil {
			e.r.Waiting = r.Waiting
		}
		if r.Lost != nil {
			e.r.Lost = r.Lost
		}
		return e, nil, nil
	}
	if d.gone.has(r.ID) {
		return nil, nil, gone(r.Key)
	}
	e = d.newEntry(r)
	d.entries[r.ID] = e
	return e, d.route(e), nil
}

// supported says whether the engine understands r.
func supported(r *driver.Request) error {
	switch {
	case r.Kind != driver.KindMutex:
		return unsupported("it has no locks of kind " + string(r.Kind))
	case r.Named:
		return unsupported("a lock of GET_LOCK belongs to one session, so no other process can re-enter it")
	case r.Mode != driver.Exclusive:
		return unsupported("its locks are exclusive")
	}
	return nil
}

// unsupported is the error of what the engine cannot do.
type unsupported string

// Error gives the reason.
func (u unsupported) Error() string { return "mysql: " + string(u) }

// Is matches driver.ErrUnsupported.
func (u unsupported) Is(t error) bool { return t == driver.ErrUnsupported }
