// The engine as sqlsession sees it: the decisions of PostgreSQL that are not statements. driver.go passes a Dialect to
// sqlsession.New, and the core calls it on the way of each request; speaker.go says the statements.

package pglock

import (
	"context"
	"encoding/binary"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit/sqlsession"
)

// A lock that was just held by others is most likely held by others again. So for a moment after a refusal a request
// goes straight to the server's queue: without a try before, and without a note of who waits. That saves two statements
// of three in each hand-off of the busiest locks.
const (
	// hotFor is how long after a refusal that is done.
	hotFor = 20 * time.Millisecond

	// noteAfter is how long such a wait goes on before it is noted. By then the statement that waits has long reached
	// the server's queue, so the note costs the hand-off nothing.
	noteAfter = 10 * time.Millisecond

	// hotKnown is how long after a refusal a caller who gives up before the note is told that the lock is held, and not
	// only that the time was over.
	hotKnown = 100 * time.Millisecond
)

// dialect is how PostgreSQL differs from other servers whose locks belong to sessions.
type dialect struct{ d *Driver }

var _ sqlsession.Dialect = dialect{}

// Supports returns an error that matches driver.ErrUnsupported, and says why, for what advisory locks cannot do, and
// for a driver that only looks. It asks the server nothing.
func (x dialect) Supports(r *driver.Request) error {
	switch {
	case x.d.opts.ReadOnly:
		return unsupported("the driver was opened to look alone (ReadOnly)")
	case !slices.Contains(kinds, r.Kind):
		return unsupported("it has no locks of kind " + string(r.Kind))
	case r.Named:
		return unsupported("an advisory lock belongs to one session, so no other process can re-enter it")
	case r.Kind == driver.KindMutex && r.Mode != driver.Exclusive:
		return unsupported("its mutexes are exclusive")
	case r.Mode > driver.Shared:
		return unsupported("no upgradeable reads: " + noConversion)
	}
	return nil
}

// noConversion is why there are no upgradeable reads. It is a text for people, in an error and in the traits.
const noConversion = "the server's queue has no place at the front for a reader that wants to write, so two of them " +
	"would wait for each other"

// unsupported is the error of something that the engine cannot do. Its text is the reason.
type unsupported string

// Error returns the reason.
func (u unsupported) Error() string { return "postgres: " + string(u) }

// Is matches driver.ErrUnsupported.
func (u unsupported) Is(t error) bool { return t == driver.ErrUnsupported }

// LockOf returns the number of the advisory lock, big endian. It depends on the table, the key and the probe alone, so
// all clients find the same one.
func (x dialect) LockOf(key driver.Key, probe int) sqlsession.LockID {
	return lockOf(x.d.hash(x.d.table.identity(), key, probe))
}

// lockOf and numberOf turn the server's number into the core's name for it and back.
func lockOf(num int64) (id sqlsession.LockID) {
	binary.BigEndian.PutUint64(id[:], uint64(num))
	return id
}

func numberOf(e *sqlsession.Entry) int64 {
	id := e.Lock()
	return int64(binary.BigEndian.Uint64(id[:]))
}

// Dial opens a session and sets it up so that it ends in bounded time when this client vanishes. It takes at most
// dialTimeout.
func (x dialect) Dial(ctx context.Context, waits bool) (*sqlsession.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	s, err := x.d.connect(ctx, waits)
	if err != nil {
		return nil, err
	}
	return s.c, s.start(ctx)
}

// IsForGood is false for every error: the wait goes on over a shared connection, whose tries find out whether the
// server is there at all.
func (dialect) IsForGood(error) bool { return false }

// LookAfter returns when to note a wait that was sent without a note.
func (dialect) LookAfter(e *sqlsession.Entry) time.Duration {
	if e.Untried() {
		return noteAfter
	}
	return 0
}

// Advise returns err with what to do about it, if that is known.
func (dialect) Advise(err error) error { return advise(err) }

// Judge returns what an error means to the caller.
func (dialect) Judge(err error) (sqlsession.Meaning, string) { return judgeError(err) }
