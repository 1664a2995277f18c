// The statements of a session as sqlsession asks for them: it implements sqlsession.Session. The core's connection
// calls it; talk.go sends and receives, try.go has the try, question.go the calls in another goroutine.

package pglock

import (
	"errors"
	"net"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit/sqlsession"
	"github.com/jackc/pgx/v5/pgconn"
)

// speaker is the engine's part of one connection: what sqlsession knows as its Session. It has no mutex. Only the
// goroutine that runs the connection's statements uses it, or the one that has borrowed the connection; d, c, raw, pid
// and started never change after the session was set up.
type speaker struct {
	d       *Driver
	c       *sqlsession.Conn
	pg      *pgconn.PgConn
	raw     net.Conn // below TLS, for deadlines and the hard end
	gate    *gate    // what pg reads from
	pid     int32    // of the server's process
	started []byte   // when that process began, as the server writes it: with the pid it names one session for ever
	server  string   // when the server began, to the microsecond: it tells servers apart, copies of one database too

	prepared [statements]bool // which statements the session knows
	begun    *question        // sent by a goroutine that has left before its answer
}

var (
	_ sqlsession.Session = (*speaker)(nil)
	_ sqlsession.Prompt  = (*speaker)(nil)
)

// mostTokens bounds a block of tokens: a second's worth of the clock. So a block moves the tokens at most a second
// ahead of it.
const mostTokens = 1_000_000

// inMode returns the statement for the mode in which e asks.
func inMode(e *sqlsession.Entry, exclusive, shared statement) statement {
	if e.Request.Mode == driver.Shared {
		return shared
	}
	return exclusive
}

// grantParams are the parameters of the statements that take a lock, as grantColumns counts them.
func grantParams(e *sqlsession.Entry, num int64) [][]byte {
	r := &e.Request
	return [][]byte{
		int8Value(num), textValue(string(r.Kind)), textValue(r.Name),
		int8Value(int64(min(max(r.Tokens, 1), mostTokens))),
		textValue(r.ID), textValue(r.Owner), textValue(r.Client), textValue(r.Label),
	}
}

// heldBy says who is in the way, as far as the row of the lock tells that stmtWho or stmtNote has found. A row of
// another name says nothing.
func heldBy(key driver.Key, r [][]byte) *driver.HeldError {
	held := &driver.HeldError{Kind: key.Kind, Name: key.Name}
	if r[0] != nil && string(r[1]) == string(key.Kind) && string(r[2]) == key.Name {
		held.Token, held.Since = uint64(int64Of(r[0])), timeOf(r[5])
		held.Owner, held.Client = string(r[3]), string(r[4])
	}
	return held
}

// errInterrupted is the error of a statement that was cancelled each time it was run.
var errInterrupted = errors.New("the statement was cancelled again and again, by an operator or a statement_timeout")

// Wait runs stmtLock, after a note of who waits. A wait that was not tried for before goes without the note, which
// LookBeside makes up for later. The end of its slice or a cancellation is no error: the core asks again, or gives up.
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

// lock runs the statement that waits. Without an error the session has the lock; no row means that its number belongs
// to another name. The note and the wait go in one packet, so that the note costs no round trip of its own.
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
	if err == nil || !isBroken(err) { // a wait without a note works as well; operators do not see it
		e.Seen(inTheWay(e, found)) // the server goes on with the second statement meanwhile
		found, err = x.receive()
	}
	return found, x.end(err)
}

// noteParams are the parameters of stmtNote. pid is the session that waits, which need not be the one that writes the
// note.
func noteParams(e *sqlsession.Entry, num int64, pid int32) [][]byte {
	r := &e.Request
	return [][]byte{int8Value(num), textValue(r.Owner), textValue(r.Client), textValue(r.Label), int4Value(pid)}
}

// inTheWay reads the answer to stmtNote. For a lock that readers share the row does not tell who holds it now; see
// inTheWayOf.
func inTheWay(e *sqlsession.Entry, found rows) *driver.HeldError {
	if len(found) != 1 || e.Request.Kind != driver.KindMutex { // see inTheWayOf
		return e.HeldBySomebody()
	}
	return heldBy(e.Request.Key, found[0])
}

// Look asks who is in the way, in one round trip. An error is dropped: a try finds out.
func (s *speaker) Look(e *sqlsession.Entry) {
	if holders, err := s.look(numberOf(e)); err == nil {
		e.Seen(heldError(e.Request.Key, holders))
	}
}

// LookBeside notes the wait of another connection and tells who is in the way, in one round trip. It never asks to be
// called again.
func (s *speaker) LookBeside(e *sqlsession.Entry, waits *sqlsession.Conn) (again bool) {
	found, err := s.exec(stmtNote, noteParams(e, numberOf(e), session(waits).pid)...)
	if !isBroken(err) {
		e.Seen(inTheWay(e, found))
	}
	return false
}

// Unlock gives the lock back. A session that does not have it is not the one that the client believes, so its
// connection is ended. After a cancellation Leave asks again: the unlock may have been done before the cancellation
// came, and Leave does not mind.
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
	return s.Leave(e) // the cancellation may have come after the unlock was done
}

// unlockLines is what an unlock asks.
func unlockLines(e *sqlsession.Entry) []line {
	return []line{{inMode(e, stmtUnlock, stmtUnlockShared), [][]byte{int8Value(numberOf(e))}}}
}

// unlocked reads the answer to unlockLines. False in it means that the session did not have the lock.
func unlocked(found rows) error {
	if len(found) != 1 || !boolOf(found[0][0]) {
		return errSwapped
	}
	return nil
}

// Leave gives back what the session may have. It does not look into pg_locks, which would cost more with each lock on
// the server. It takes no new place there either, because a server that is short of places would refuse that.
//
// A session that waits holds nothing else, so it unlocks all, about which the server is silent. Others unlock the one
// lock; the server writes a warning to its log if they did not have it, which is seldom, because it takes an error
// before.
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

// interruptions is how often a cancelled statement is run again. One cancellation may have been meant for the statement
// before, and an operator may send another.
const interruptions = 3

// Pin keeps for ever the row of another name that has the same number; see wire.md. It reports false if there is no
// such row any more.
func (s *speaker) Pin(e *sqlsession.Entry) (pinned bool, err error) {
	found, err := s.exec(stmtPin, int8Value(numberOf(e)), textValue(string(e.Request.Kind)), textValue(e.Request.Name))
	return len(found) == 1, err
}

// Interrupt cancels the statement in which another session waits. It names that session by its process and when it
// began, so it can hit no other one. The server answers before the other session has noticed.
func (s *speaker) Interrupt(other *sqlsession.Conn) error {
	o := session(other)
	_, err := s.exec(stmtCancel, int4Value(o.pid), o.started)
	if isBroken(err) {
		return err
	}
	return nil // a refusal means that no cancellation was sent
}

// Bury ends another session and reports whether it is gone. A session has given its locks back when the server lists it
// no more. The core calls it again until then. A role without the right to end sessions of others waits until the
// server does it.
func (s *speaker) Bury(other *sqlsession.Conn) (buried bool) {
	o := session(other)
	found, err := s.exec(stmtTerminate, int4Value(o.pid), o.started)
	return err == nil && len(found) == 0
}

// Ping is a sign of life: one round trip, which starts idle_session_timeout anew. It makes sure that it is this session
// that answers, and not another one, or another server, behind a pooler.
func (s *speaker) Ping() {
	sent := s.d.core.Clock()
	found, err := s.exec(stmtPing)
	switch {
	case err != nil: // if it has not ended the connection, the next one may succeed, and trust ends meanwhile
	case len(found) != 1 || int32Of(found[0][0]) != s.pid:
		s.c.Fail(errSwapped)
	default:
		s.c.Confirm(sent)
	}
}

// Close ends the session with the protocol's Terminate, so that the server frees its locks at once.
func (s *speaker) Close() {
	_ = s.pg.Close(background) // after an error the server hears no goodbye, but the end of the socket
	_ = s.raw.Close()          // ends the goroutine that the client library starts after a broken read
	<-s.pg.CleanupDone()       // which has ended when this returns
}
