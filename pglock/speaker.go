package pglock

import (
	"errors"
	"net"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit/sqlsession"
	"github.com/jackc/pgx/v5/pgconn"
)

// speaker says to one session of the server what its connection is to say. It is for the goroutine that runs the
// connection's statements.
type speaker struct {
	d       *Driver
	c       *sqlsession.Conn
	pg      *pgconn.PgConn
	raw     net.Conn // below TLS
	gate    *gate
	pid     int32  // of the server's process
	started []byte // when that began, as the server tells it: with the pid a name for ever

	prepared [statements]bool
	begun    *question // asked in another goroutine, and not decided there
}

var (
	_ sqlsession.Session = (*speaker)(nil)
	_ sqlsession.Prompt  = (*speaker)(nil)
)

// mostTokens bounds a block: a second's worth of the clock.
const mostTokens = 1_000_000

// inMode returns the statement for the mode of e.
func inMode(e *sqlsession.Entry, exclusive, shared statement) statement {
	if e.Request.Mode == driver.Shared {
		return shared
	}
	return exclusive
}

// grantParams are the parameters of the statements that take a lock.
func grantParams(e *sqlsession.Entry, num int64) [][]byte {
	r := &e.Request
	return [][]byte{
		int8Value(num), textValue(string(r.Kind)), textValue(r.Name),
		int8Value(int64(min(max(r.Tokens, 1), mostTokens))),
		textValue(r.ID), textValue(r.Owner), textValue(r.Client), textValue(r.Label),
	}
}

// heldBy says who is in the way, as far as the row of the lock tells, which stmtWho or stmtNote has found.
func heldBy(key driver.Key, r [][]byte) *driver.HeldError {
	held := &driver.HeldError{Kind: key.Kind, Name: key.Name}
	if r[0] != nil && string(r[1]) == string(key.Kind) && string(r[2]) == key.Name {
		held.Token, held.Since = uint64(int64Of(r[0])), timeOf(r[5])
		held.Owner, held.Client = string(r[3]), string(r[4])
	}
	return held
}

// errInterrupted is for a statement that was cancelled again and again.
var errInterrupted = errors.New("the statement was cancelled again and again, by an operator or a statement_timeout")

// Wait runs stmtLock, after a note of who waits unless the wait was not tried for.
func (s *speaker) Wait(e *sqlsession.Entry) (a sqlsession.Answer, err error) {
	found, err := s.lock(e, numberOf(e))
	switch {
	case s.c.Err() != nil:
		return a, s.unasked(inMode(e, stmtLock, stmtLockShared), err)
	case err == nil && len(found) == 1:
		return grantIn(found), nil
	case err == nil:
		a.Foreign = true
	case stateOf(err) == stateLockTimeout || isPassing(err):
		return a, nil
	}
	return a, err
}

// lock runs the statement that waits, and tells who is in the way before. Without an error the session has the lock,
// and there is no row if its number belongs to another name.
func (s *speaker) lock(e *sqlsession.Entry, num int64) (rows, error) {
	allowed := s.d.opts.Slice + s.d.opts.Timeout
	if e.Untried() {
		return s.execFor(allowed, inMode(e, stmtLock, stmtLockShared), grantParams(e, num)...)
	}
	x, err := s.say(allowed, line{stmtNote, noteParams(e, num, s.pid)},
		line{inMode(e, stmtLock, stmtLockShared), grantParams(e, num)})
	if err != nil {
		return nil, err
	}
	found, err := x.receive()
	if err == nil || !isBroken(err) { // a note that was refused is nobody's loss
		e.Seen(inTheWay(e, found)) // the server goes on with the second statement meanwhile
		found, err = x.receive()
	}
	return found, x.end(err)
}

func noteParams(e *sqlsession.Entry, num int64, pid int32) [][]byte {
	r := &e.Request
	return [][]byte{int8Value(num), textValue(r.Owner), textValue(r.Client), textValue(r.Label), int4Value(pid)}
}

// inTheWay reads the answer to stmtNote.
func inTheWay(e *sqlsession.Entry, found rows) *driver.HeldError {
	if len(found) != 1 || e.Request.Kind != driver.KindMutex { // see inTheWayOf
		return e.HeldBySomebody()
	}
	return heldBy(e.Request.Key, found[0])
}

// Look asks who is in the way.
func (s *speaker) Look(e *sqlsession.Entry) {
	if holders, err := s.look(numberOf(e)); err == nil {
		e.Seen(heldError(e.Request.Key, holders))
	}
}

// LookBeside notes the wait, and tells who is in the way.
func (s *speaker) LookBeside(e *sqlsession.Entry, waits *sqlsession.Conn) (again bool) {
	found, err := s.exec(stmtNote, noteParams(e, numberOf(e), session(waits).pid)...)
	if !isBroken(err) {
		e.Seen(inTheWay(e, found))
	}
	return false
}

// Unlock gives the lock back.
func (s *speaker) Unlock(e *sqlsession.Entry) error {
	all, err := s.answers(unlockLines(e))
	switch {
	case err == nil:
		if err = unlocked(all[0]); err != nil {
			s.c.Fail(err)
		}
		return err
	case s.c.Err() != nil || !isPassing(err):
		return err
	}
	return s.Leave(e) // what has cancelled the statement may have come after its effect
}

func unlockLines(e *sqlsession.Entry) []line {
	return []line{{inMode(e, stmtUnlock, stmtUnlockShared), [][]byte{int8Value(numberOf(e))}}}
}

// unlocked reads the answer to unlockLines.
func unlocked(found rows) error {
	if len(found) != 1 || !boolOf(found[0][0]) {
		return errSwapped
	}
	return nil
}

// Leave gives back what the session may have, without a look into the server's table of locks, which costs as much as
// all have, and without a place in it, which a server that is short of them has not. One that waits holds nothing else,
// and the server is silent about what it has not. Of others the server writes a warning to its log then, which is
// seldom: they have had an error.
func (s *speaker) Leave(e *sqlsession.Entry) (err error) {
	st, params := inMode(e, stmtUnlock, stmtUnlockShared), [][]byte{int8Value(numberOf(e))}
	if s.c.Waits() {
		st, params = stmtUnlockAll, nil
	}
	for range interruptions {
		if _, err = s.exec(st, params...); err == nil || s.c.Err() != nil || !isPassing(err) {
			break
		}
	}
	return err
}

// interruptions is how often a statement is run again that was cancelled. One cancellation may hit it that was meant
// for the one before, and an operator may send another.
const interruptions = 3

// Pin keeps the row of another name that has the same number. See wire.md.
func (s *speaker) Pin(e *sqlsession.Entry) (pinned bool, err error) {
	found, err := s.exec(stmtPin, int8Value(numberOf(e)), textValue(string(e.Request.Kind)), textValue(e.Request.Name))
	return len(found) == 1, err
}

// Interrupt cancels the statement that another session waits for.
func (s *speaker) Interrupt(other *sqlsession.Conn) error {
	o := session(other)
	_, err := s.exec(stmtCancel, int4Value(o.pid), o.started)
	if isBroken(err) {
		return err
	}
	return nil // a refusal has sent nothing
}

// Bury ends another session. It has given its locks back when it is not listed any more. A role without the right to
// end it waits until it is gone.
func (s *speaker) Bury(other *sqlsession.Conn) (buried bool) {
	o := session(other)
	found, err := s.exec(stmtTerminate, int4Value(o.pid), o.started)
	return err == nil && len(found) == 0
}

// Ping is a sign of life.
func (s *speaker) Ping() {
	_, _ = s.exec(stmtPing) // if it fails, the connection has ended, which is told to everybody
}

// Close says goodbye.
func (s *speaker) Close() {
	_ = s.pg.Close(background) // an error says that the server hears no goodbye, but it hears the end
	_ = s.raw.Close()          // ends what the client library does after a broken read
	<-s.pg.CleanupDone()       // which is over then
}
