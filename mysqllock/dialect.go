package mysqllock

import (
	"context"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit/sqlsession"
)

const (
	// lookAfter is how long a wait goes on before it is looked who is in the way, which most waits for a lock that is
	// held for a moment are spared.
	lookAfter = 10 * time.Millisecond

	// quiet is longer than the waits of some processes that pass a lock around, so that none of them wakes up in
	// between. Connections are not lent here, and nobody leaves later for that.
	quiet = 20 * time.Millisecond

	// hinted is how long a lock that was held when it was last waited for is waited for without a try.
	hinted = time.Hour
)

// dialect is what MySQL and MariaDB do in their own way.
type dialect struct{ d *Driver }

var _ sqlsession.Dialect = dialect{}

// Supports says whether the engine understands r.
func (dialect) Supports(r *driver.Request) error {
	switch {
	case !slices.Contains(kinds, r.Kind):
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

// LockOf is the identity of the lock. No two locks have the same.
func (x dialect) LockOf(key driver.Key, _ int) sqlsession.LockID { return x.d.idOf(key).core() }

// IsForGood is true unless the server has no room for another connection at the moment.
func (dialect) IsForGood(err error) bool { return !isFull(err) }

// LookAfter is for all waits: the server does not say who is in the way before they are over.
func (dialect) LookAfter(e *sqlsession.Entry) time.Duration {
	if e.HasSeen() {
		return 0
	}
	return lookAfter
}

// Advise adds what to do about an error.
func (dialect) Advise(err error) error { return advise(err) }

// Judge says what an error means.
func (dialect) Judge(err error) (sqlsession.Meaning, string) { return judgeError(err) }

// Dial opens a session and makes it one that ends in bounded time when this client vanishes.
func (x dialect) Dial(ctx context.Context, waits bool) (*sqlsession.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	s, err := x.d.connect(ctx, waits)
	if err != nil {
		return nil, err
	}
	if err = s.setUp(ctx); err == nil {
		err = x.d.core.Adopt(s.c, s.beside)
	}
	if err != nil {
		s.c.Discard() // the error that matters is this one
		return nil, err
	}
	return s.c, nil
}

// beside refuses to be a session of another server than the others: after a failover these end first.
func (s *speaker) beside(other *sqlsession.Conn) error {
	if session(other).server != s.server {
		return errOtherServer
	}
	return nil
}
