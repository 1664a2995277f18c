// The engine as sqlsession sees it: the decisions of MySQL and MariaDB that are not statements. driver.go passes a
// Dialect to sqlsession.New, and the core calls it on the way of each request; speaker.go says the statements.

package mysqllock

import (
	"context"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit/sqlsession"
)

const (
	// lookAfter is how long a wait goes on before another connection asks who is in the way. Most waits for a lock that
	// is held for a moment are over by then, and spared the question.
	lookAfter = 10 * time.Millisecond

	// quiet is longer than the pauses of some processes that pass a lock around, so that none of them wakes up in
	// between. Connections are not lent here (there is no Prompt), so no caller returns later for it.
	quiet = 20 * time.Millisecond

	// hinted is how long a lock that was held when it was last waited for is waited for without a try. If it turns out
	// to be free, the wait has cost one round trip more than a try, and the hint is dropped.
	hinted = time.Hour
)

// dialect is how MySQL and MariaDB differ from other servers whose locks belong to sessions.
type dialect struct{ d *Driver }

var _ sqlsession.Dialect = dialect{}

// Supports returns an error that matches driver.ErrUnsupported, and says why, for what GET_LOCK cannot do, and for a
// driver that only looks. It asks the server nothing.
func (x dialect) Supports(r *driver.Request) error {
	switch {
	case x.d.opts.ReadOnly:
		return unsupported("the driver was opened to look alone (ReadOnly)")
	case !slices.Contains(kinds, r.Kind):
		return unsupported("it has no locks of kind " + string(r.Kind))
	case r.Named:
		return unsupported("a lock of GET_LOCK belongs to one session, so no other process can re-enter it")
	case r.Mode != driver.Exclusive:
		return unsupported("its locks are exclusive")
	}
	return nil
}

// unsupported is the error of something that the engine cannot do. Its text is the reason.
type unsupported string

// Error returns the reason.
func (u unsupported) Error() string { return "mysql: " + string(u) }

// Is matches driver.ErrUnsupported.
func (u unsupported) Is(t error) bool { return t == driver.ErrUnsupported }

// LockOf returns the identity of the lock. It has 240 bits of a hash, so no two locks have the same, and there are no
// probes.
func (x dialect) LockOf(key driver.Key, _ int) sqlsession.LockID { return x.d.idOf(key).core() }

// IsForGood is true unless the server has no room for another connection at the moment. Then a wait asks again and
// again over a shared connection.
func (dialect) IsForGood(err error) bool { return !isFull(err) }

// LookAfter is for all waits that have not yet learned who is in the way: the server says it only when the wait is
// over.
func (dialect) LookAfter(e *sqlsession.Entry) time.Duration {
	if e.HasSeen() {
		return 0
	}
	return lookAfter
}

// Advise returns err with what to do about it, if that is known.
func (dialect) Advise(err error) error { return advise(err) }

// Judge returns what an error means to the caller.
func (dialect) Judge(err error) (sqlsession.Meaning, string) { return judgeError(err) }

// Dial opens a session and sets it up so that it ends in bounded time when this client vanishes. It takes at most
// dialTimeout.
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
		s.c.Discard() // an error of closing would hide the one that matters
		return nil, err
	}
	return s.c, nil
}

// beside refuses a session of another server than that of the others. After a failover those end first; behind a load
// balancer two servers would each grant the lock.
func (s *speaker) beside(other *sqlsession.Conn) error {
	if session(other).server != s.server {
		return errOtherServer
	}
	return nil
}
