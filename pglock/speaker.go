package pglock

import (
	"errors"
	"fmt"
	"net"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/sqllock"
	"github.com/jackc/pgx/v5/pgconn"
)

// speaker says to one session of the server what its connection is to say. It is for the connection's goroutine.
type speaker struct {
	d       *Driver
	c       *sqllock.Conn
	pg      *pgconn.PgConn
	raw     net.Conn // below TLS
	pid     int32    // of the server's process
	started []byte   // when that began, as the server tells it: with the pid a name for ever

	prepared [statements]bool
}

var _ sqllock.Session = (*speaker)(nil)

// mostTokens bounds a block: a second's worth of the clock.
const mostTokens = 1_000_000

// inMode returns the statement for the mode of e.
func inMode(e *sqllock.Entry, exclusive, shared statement) statement {
	if e.Request.Mode == driver.Shared {
		return shared
	}
	return exclusive
}

// grantParams are the parameters of the statements that take a lock.
func grantParams(e *sqllock.Entry, num int64) [][]byte {
	r := &e.Request
	return [][]byte{
		int8Value(num), textValue(string(r.Kind)), textValue(r.Name), int8Value(int64(min(max(r.Tokens, 1), mostTokens))),
		textValue(r.ID), textValue(r.Owner), textValue(r.Client), textValue(r.Label),
	}
}

// Try runs stmtTry. After an error, which the server may have raised when the lock was taken already, and when the number
// belongs to another name, the lock is given back.
func (s *speaker) Try(e *sqllock.Entry) (a sqllock.Answer, err error) {
	num, st := numberOf(e), inMode(e, stmtTry, stmtTryShared)
	for range interruptions {
		found, err := s.exec(st, grantParams(e, num)...)
		if err == nil && len(found) == 1 {
			return s.read(e, num, found[0])
		}
		if err == nil {
			err = errSwapped // it answers with one row
		}
		if s.c.Broken() != nil {
			return a, s.unasked(st, err)
		}
		if failed := s.Leave(e); failed != nil {
			s.c.Break(failed) // it may be held, and nobody would know
		}
		if s.c.Broken() != nil || !isPassing(err) || e.Stopped() {
			return a, err
		}
	}
	return a, errInterrupted
}

// unasked marks the error that has ended a session which a statement did not reach: the server had ended it before, the statement was
// not even prepared, or nothing of it was written.
func (s *speaker) unasked(st statement, err error) error {
	if !s.prepared[st] || stateOf(err) == stateIdle || pgconn.SafeToRetry(err) {
		return fmt.Errorf("%w: %w", sqllock.ErrUnasked, err)
	}
	return err
}

// read takes the answer to stmtTry apart.
func (s *speaker) read(e *sqllock.Entry, num int64, r [][]byte) (a sqllock.Answer, err error) {
	taken, minted := boolOf(r[0]), boolOf(r[1])
	token, last := uint64(int64Of(r[2])), uint64(int64Of(r[3]))
	switch {
	case taken && minted:
		return grantOf(token, last), nil
	case taken:
		a.Foreign = true
		if err := s.Unlock(e); err != nil {
			s.c.Break(err) // it is held, and nobody would know
			return a, err
		}
	default:
		a.Foreign = r[4] != nil && (string(r[4]) != string(e.Request.Kind) || string(r[5]) != e.Request.Name)
		a.Held = s.inTheWayOf(e, num, r[4], r[5], token, r[6], r[7], r[8])
		if !a.Foreign && !e.Request.Try {
			s.d.core.Hint(lockOf(num), hotFor)
		}
	}
	return a, nil
}

// inTheWayOf says who is in the way of e, as far as the row of the lock tells. That is the one who was granted it last: of
// readers he may have left before the others, so who only tries has it looked up.
func (s *speaker) inTheWayOf(
	e *sqllock.Entry, num int64, kind, name []byte, token uint64, owner, client, since []byte,
) *driver.HeldError {
	switch {
	case e.Request.Kind == driver.KindMutex:
		return heldOf(e.Request.Key, kind, name, token, owner, client, since)
	case e.Request.Try:
		if holders, err := s.look(num); err == nil {
			return heldError(e.Request.Key, holders)
		}
	}
	return e.HeldBySomebody()
}

func grantOf(token, last uint64) sqllock.Answer {
	return sqllock.Answer{Granted: true, Token: token, Tokens: int(last-token) + 1}
}

// heldOf says who is in the way, as far as the row of the lock tells.
func heldOf(key driver.Key, kind, name []byte, token uint64, owner, client, since []byte) *driver.HeldError {
	held := &driver.HeldError{Kind: key.Kind, Name: key.Name}
	if string(kind) == string(key.Kind) && string(name) == key.Name && kind != nil {
		held.Token, held.Owner, held.Client, held.Since = token, string(owner), string(client), timeOf(since)
	}
	return held
}

// errInterrupted is for a statement that was cancelled again and again.
var errInterrupted = errors.New("the statement was cancelled again and again, by an operator or a statement_timeout")

// Wait runs stmtLock, after a note of who waits unless the wait was not tried for.
func (s *speaker) Wait(e *sqllock.Entry) (a sqllock.Answer, err error) {
	found, err := s.lock(e, numberOf(e))
	switch {
	case s.c.Broken() != nil:
		return a, s.unasked(inMode(e, stmtLock, stmtLockShared), err)
	case err == nil && len(found) == 1:
		return grantOf(uint64(int64Of(found[0][0])), uint64(int64Of(found[0][1]))), nil
	case err == nil:
		a.Foreign = true
	case stateOf(err) == stateLockTimeout || isPassing(err):
		return a, nil
	}
	return a, err
}

// lock runs the statement that waits, and tells who is in the way before. Without an error the session has the lock,
// and there is no row if its number belongs to another name.
func (s *speaker) lock(e *sqllock.Entry, num int64) (rows, error) {
	allowed := s.d.opts.Slice + s.d.opts.Timeout
	if e.Untried() {
		return s.execFor(allowed, inMode(e, stmtLock, stmtLockShared), grantParams(e, num)...)
	}
	x, err := s.say(allowed, stmtNote, inMode(e, stmtLock, stmtLockShared), noteParams(e, num, s.pid), grantParams(e, num))
	if err != nil {
		return nil, err
	}
	found, err := x.hear()
	if err == nil || !isBroken(err) { // a note that was refused is nobody's loss
		e.Seen(inTheWay(e, found)) // the server goes on with the second statement meanwhile
		found, err = x.hear()
	}
	return found, x.end(err)
}

func noteParams(e *sqllock.Entry, num int64, pid int32) [][]byte {
	r := &e.Request
	return [][]byte{int8Value(num), textValue(r.Owner), textValue(r.Client), textValue(r.Label), int4Value(pid)}
}

// inTheWay reads the answer to stmtNote.
func inTheWay(e *sqllock.Entry, found rows) *driver.HeldError {
	if len(found) != 1 || e.Request.Kind != driver.KindMutex { // see inTheWayOf
		return e.HeldBySomebody()
	}
	r := found[0]
	return heldOf(e.Request.Key, r[1], r[2], uint64(int64Of(r[0])), r[3], r[4], r[5])
}

// Look asks who is in the way.
func (s *speaker) Look(e *sqllock.Entry) {
	if holders, err := s.look(numberOf(e)); err == nil {
		e.Seen(heldError(e.Request.Key, holders))
	}
}

// LookBeside notes the wait, and tells who is in the way.
func (s *speaker) LookBeside(e *sqllock.Entry, waits *sqllock.Conn) (again bool) {
	found, err := s.exec(stmtNote, noteParams(e, numberOf(e), session(waits).pid)...)
	if !isBroken(err) {
		e.Seen(inTheWay(e, found))
	}
	return false
}

// Unlock gives the lock back.
func (s *speaker) Unlock(e *sqllock.Entry) (err error) {
	num := numberOf(e)
	for range interruptions {
		var r rows
		if r, err = s.exec(inMode(e, stmtUnlock, stmtUnlockShared), int8Value(num)); err == nil {
			if len(r) != 1 || !boolOf(r[0][0]) {
				return errSwapped
			}
			return nil
		}
		if s.c.Broken() != nil || !isPassing(err) {
			break
		}
	}
	return err
}

// Leave gives back what the session may have. The server would complain in its log about a lock that it has not.
func (s *speaker) Leave(e *sqllock.Entry) (err error) {
	num := numberOf(e)
	for range interruptions {
		if _, err = s.exec(stmtUnlockIfHeld, int8Value(num)); err == nil || s.c.Broken() != nil || !isPassing(err) {
			break
		}
	}
	return err
}

// interruptions is how often a statement is run again that was cancelled. One cancellation may hit it that was meant for
// the one before, and an operator may send another.
const interruptions = 3

// Pin keeps the row of another name that has the same number. See wire.md.
func (s *speaker) Pin(e *sqllock.Entry) (pinned bool, err error) {
	found, err := s.exec(stmtPin, int8Value(numberOf(e)), textValue(string(e.Request.Kind)), textValue(e.Request.Name))
	return len(found) == 1, err
}

// Interrupt cancels the statement that another session waits for.
func (s *speaker) Interrupt(other *sqllock.Conn) error {
	o := session(other)
	_, err := s.exec(stmtCancel, int4Value(o.pid), o.started)
	if isBroken(err) {
		return err
	}
	return nil // a refusal has sent nothing
}

// Bury ends another session. It has given its locks back when it is not listed any more. A role without the right to end
// it waits until it is gone.
func (s *speaker) Bury(other *sqllock.Conn) (buried bool) {
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
