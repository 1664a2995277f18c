// The statements of a session as sqlsession asks for them: it implements sqlsession.Session. The core's connection
// calls it; statements.go has the texts, talk.go sends and receives.

package mysqllock

import (
	sqldriver "database/sql/driver"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit/sqlsession"
)

// speaker is the engine's part of one connection: what sqlsession knows as its Session. It has no mutex. Only the
// goroutine of the connection uses my and stmts; the other fields do not change after the session was set up, so other
// sessions may read them.
type speaker struct {
	d      *Driver
	c      *sqlsession.Conn
	my     clientConn
	id     uint64 // CONNECTION_ID(), which the server uses again after a restart
	server string // which server it is; see serverOf
	mark   string // the lock that the session has taken for itself: it tells sessions apart for ever

	writable bool // the server was not read-only when the session began

	stmts [statements]sqldriver.Stmt // nil as long as a statement is not prepared
}

var _ sqlsession.Session = (*speaker)(nil)

// clientConn is what is needed of the client library's connection, which is used directly: the standard library's pool
// would move statements to other sessions.
type clientConn interface {
	sqldriver.Conn
	sqldriver.ConnPrepareContext
	sqldriver.ExecerContext
	sqldriver.QueryerContext
}

// mostTokens bounds a block of tokens: a second's worth of the clock. So a block moves the tokens at most a second
// ahead of it.
const mostTokens = 1_000_000

// grantArgs are the arguments of stmtTry and stmtMint, in the order of their question marks.
func grantArgs(e *sqlsession.Entry, id lockID) []sqldriver.NamedValue {
	r := &e.Request
	return named(id[:], string(r.Kind), []byte(r.Name), int64(tokensOf(r)-1),
		[]byte(clip(r.Owner)), []byte(clip(r.Client)), []byte(clip(r.Label)), id.lock())
}

// tokensOf is how many tokens the block of r has if it is granted whole.
func tokensOf(r *driver.Request) int { return min(max(r.Tokens, 1), mostTokens) }

// clip shortens a text that only people read to the size of its column.
func clip(s string) string { return driver.CutLabel(s, driver.MaxLabel) }

// Try runs stmtTry. A refusal does not name the holder, so a caller that does not wait has it looked up, for another
// round trip; one that waits is told later.
func (s *speaker) Try(e *sqlsession.Entry) (a sqlsession.Answer, err error) {
	if a, err = s.take(e, stmtTry); err != nil || a.Granted {
		return a, err
	}
	a.Held = e.HeldBySomebody()
	if e.Request.Try {
		if held, _, err := s.look(e.Request.Key, lockOf(e)); err == nil { // otherwise it is refused all the same
			a.Held = held
		}
	}
	return a, nil
}

// take runs the statement that mints the token. After an error of stmtTry, which may have taken the lock before it
// failed, the lock is given back before the statement is run again; if that fails too, the session may still have the
// lock, and the error matches sqlsession.ErrUnsure. stmtMint takes no lock: after its errors the core calls Leave.
func (s *speaker) take(e *sqlsession.Entry, st statement) (a sqlsession.Answer, err error) {
	args := grantArgs(e, lockOf(e))
	for range interruptions {
		var affected, value int64
		affected, value, err = s.exec(st, args)
		if err == nil && affected > 0 {
			if a = mintedFor(&e.Request, value); a.Token == 0 {
				s.c.Fail(errNoToken) // it has the lock, and its end gives that back
				return sqlsession.Answer{}, errNoToken
			}
			return a, nil
		}
		if err == nil || s.c.Err() != nil {
			if st == stmtTry {
				err = unasked(err)
			}
			return a, err
		}
		if st == stmtTry {
			if failed := s.Leave(e); failed != nil {
				return a, fmt.Errorf("%w: %w (after: %w)", sqlsession.ErrUnsure, failed, err)
			}
		}
		if !isPassing(err) || e.Stopped() {
			break
		}
	}
	return a, err
}

// unasked marks the error that has ended a session if the try did not reach it: it was not prepared yet, or nothing of
// it was written. Then the core may ask again over another connection, without a second hold anywhere.
func unasked(err error) error {
	if errors.Is(err, errUnprepared) || errors.Is(err, sqldriver.ErrBadConn) {
		return fmt.Errorf("%w: %w", sqlsession.ErrUnasked, err)
	}
	return err
}

// mintedFor reads the value that came back with a token: the token, and whether the whole block was granted. The token
// is 0 if none came back: 0 is what the protocol says then.
func mintedFor(r *driver.Request, value int64) sqlsession.Answer {
	a := sqlsession.Answer{Granted: true, Token: uint64(value) &^ blockFlag, Tokens: 1}
	if value&blockFlag != 0 {
		a.Tokens = tokensOf(r)
	}
	return a
}

// Wait runs the statement that waits, and then stmtMint. The answer to the wait does not say that the session has the
// lock now: the server may have ended the session since, and answered on another. The second statement makes sure of
// that as it writes the token.
func (s *speaker) Wait(e *sqlsession.Entry) (a sqlsession.Answer, err error) {
	id := lockOf(e)
	if e.Refused() {
		e.Tell(e.HeldBySomebody()) // the holder is told if the wait lasts
	}
	s.c.Sent(s.d.opts.Slice + s.d.opts.Timeout)
	rows, err := queryAll(s.my.QueryContext(background, s.d.waitText(&e.Request, id), nil))
	err = s.answered(err)
	switch {
	case isPassing(err):
		return a, nil
	case errors.Is(err, sqldriver.ErrBadConn): // nothing was written
		return a, fmt.Errorf("%w: %w", sqlsession.ErrUnasked, err)
	case err != nil || len(rows) != 1:
		return a, err
	}
	// The answer says whether the lock was held when the wait began: if so, the next request for it waits at once.
	lasts := hinted
	if rows[0].uint(0) == 0 {
		lasts = 0
	}
	s.d.core.Hint(id.core(), lasts)
	// Without the lock the slice is over, or the wait was cancelled. A lock that came together with a cancellation is
	// given back by Leave, so it needs no token.
	if rows[0].uint(1) != 1 || e.Stopped() {
		return a, nil
	}
	a, err = s.take(e, stmtMint)
	if numberOf(err) == errNull {
		s.c.Fail(errSwapped)
	}
	return a, err
}

// Look tells who has the lock, in one round trip. An error is dropped: a try finds out.
func (s *speaker) Look(e *sqlsession.Entry) {
	if held, _, err := s.look(e.Request.Key, lockOf(e)); err == nil {
		e.Seen(held)
	}
}

// LookBeside tells who is in the way of a wait on another connection, in one round trip. It asks to be called again if
// the wait has just ended, or nobody has the lock at this moment.
func (s *speaker) LookBeside(e *sqlsession.Entry, waits *sqlsession.Conn) (again bool) {
	held, heldBy, err := s.look(e.Request.Key, lockOf(e))
	if err != nil || heldBy == 0 || heldBy == session(waits).id {
		return true // the answer is on its way, or nobody answers
	}
	e.Seen(held)
	return false
}

// look asks who has a lock, in one round trip. heldBy is the session that has it, or 0.
func (s *speaker) look(key driver.Key, id lockID) (held *driver.HeldError, heldBy uint64, err error) {
	rows, err := s.query(s.d.lookText(id))
	if err != nil {
		return nil, 0, err
	}
	held, heldBy = heldOf(key, rows)
	return held, heldBy, nil
}

// heldOf reads the answer to lookText. The row counts only if the session that wrote it has the lock: another may just
// have got it and not yet have written.
func heldOf(key driver.Key, rows []row) (held *driver.HeldError, heldBy uint64) {
	held = &driver.HeldError{Kind: key.Kind, Name: key.Name}
	if len(rows) == 0 {
		return held, 0
	}
	r := readRecord(rows[0])
	if r.heldBy == 0 || r.heldBy != r.session {
		return held, r.heldBy
	}
	held.Owner, held.Client, held.Token, held.Since = r.owner, r.client, r.token, r.since
	return held, r.heldBy
}

// Unlock gives the lock back, in one round trip. A session that does not have it is not the one that the client
// believes, so its connection is ended.
func (s *speaker) Unlock(e *sqlsession.Entry) error {
	had, err := s.unlock(lockOf(e).lock())
	if err == nil && !had {
		s.c.Fail(errSwapped)
		return errSwapped
	}
	return err
}

// Leave gives back what the session may have. It is no error if it has nothing.
func (s *speaker) Leave(e *sqlsession.Entry) error {
	_, err := s.unlock(lockOf(e).lock())
	return err
}

// Pin is for numbers that two locks share. Here there are none.
func (s *speaker) Pin(*sqlsession.Entry) (bool, error) { return false, nil }

// Interrupt ends the statement in which another session waits, by KILL QUERY, which also leaves the queue. Its
// connection lives on.
//
// The session is named by its mark, and the server finds its number as it ends the statement: a number that the client
// remembers is another program's after a restart of the server, or at another server behind the same address.
func (s *speaker) Interrupt(other *sqlsession.Conn) error {
	err := s.kill("QUERY", other)
	if isBroken(err) {
		return err
	}
	return nil // the session has ended
}

// Bury ends another session and reports whether it is gone. The core calls it again until the server has no such
// session, because one that is being killed keeps its locks for another moment.
func (s *speaker) Bury(other *sqlsession.Conn) (buried bool) {
	return numberOf(s.kill("CONNECTION", other)) == errUnknownThread
}

// kill ends a statement or a session of another connection, in one round trip. It never names a number that was learnt
// before: after a restart of the server, of which nothing may have been heard here, that is another program's session.
// The server finds the session by its mark, within the statement. For a mark that nobody has, the number is NULL, which
// counts as 0, and no session has that: errUnknownThread.
func (s *speaker) kill(what string, other *sqlsession.Conn) error {
	return s.run("KILL " + what + " IS_USED_LOCK('" + session(other).mark + "')")
}

// Ping is a sign of life: one round trip, which starts wait_timeout anew. It makes sure that it is this session that
// answers, and not another one behind a proxy. A server that has become read-only since is not the primary any more:
// another one may grant the same lock, and this one would go on to answer.
func (s *speaker) Ping() {
	sent := s.d.core.Clock()
	rows, err := s.query("SELECT IS_USED_LOCK('" + s.mark + "'), @@GLOBAL.read_only")
	switch {
	case err != nil: // if it has not ended the connection, the next one may succeed, and trust ends meanwhile
	case len(rows) != 1 || rows[0].uint(0) != s.id:
		s.c.Fail(errSwapped)
	case s.writable && isReadOnly(rows[0].text(1)):
		s.c.Fail(errDemoted)
	default:
		s.c.Confirm(sent)
	}
}

// Close ends the session with the protocol's goodbye, so that the server frees its locks at once.
func (s *speaker) Close() {
	_ = s.my.Close() // after an error the server hears no goodbye, but the end of the socket
}
