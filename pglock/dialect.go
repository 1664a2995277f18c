package pglock

import (
	"context"
	"encoding/binary"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit/sqlsession"
)

// A lock that was just held by others is most likely held by others again, so for a moment it is not tried for: it is
// waited for at once, and without a note. That saves the busiest locks two statements of three for each hand-off.
const (
	// hotFor is how long after a refusal.
	hotFor = 20 * time.Millisecond

	// noteAfter is how long such a wait may go on unnoticed. By then it has long reached the server's queue.
	noteAfter = 10 * time.Millisecond

	// hotKnown is how long a caller who gives up before the note may be told that the lock is held.
	hotKnown = 100 * time.Millisecond
)

// dialect is what PostgreSQL does in its own way.
type dialect struct{ d *Driver }

var _ sqlsession.Dialect = dialect{}

// Supports says whether the engine understands r.
func (dialect) Supports(r *driver.Request) error {
	switch {
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

// noConversion is why.
const noConversion = "the server's queue has no place at the front for a reader that wants to write, so two of them " +
	"would wait for each other"

// unsupported is the error of what the engine cannot do.
type unsupported string

// Error gives the reason.
func (u unsupported) Error() string { return "postgres: " + string(u) }

// Is matches driver.ErrUnsupported.
func (u unsupported) Is(t error) bool { return t == driver.ErrUnsupported }

// LockOf is the number of the advisory lock.
func (x dialect) LockOf(key driver.Key, probe int) sqlsession.LockID {
	return lockOf(x.d.hash(x.d.table.identity(), key, probe))
}

func lockOf(num int64) (id sqlsession.LockID) {
	binary.BigEndian.PutUint64(id[:], uint64(num))
	return id
}

func numberOf(e *sqlsession.Entry) int64 {
	id := e.Lock()
	return int64(binary.BigEndian.Uint64(id[:]))
}

// Dial opens a session and makes it one that ends in bounded time when this client vanishes.
func (x dialect) Dial(ctx context.Context, waits bool) (*sqlsession.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	s, err := x.d.connect(ctx, waits)
	if err != nil {
		return nil, err
	}
	return s.c, s.start(ctx)
}

// IsForGood is false: the tries of who cannot wait find out whether the server is there at all.
func (dialect) IsForGood(error) bool { return false }

// LookAfter is for waits that bring no note along.
func (dialect) LookAfter(e *sqlsession.Entry) time.Duration {
	if e.Untried() {
		return noteAfter
	}
	return 0
}

// Advise adds what to do about an error.
func (dialect) Advise(err error) error { return advise(err) }

// Judge says what an error means.
func (dialect) Judge(err error) (sqlsession.Meaning, string) { return judgeError(err) }
