// A try for a lock, over a shared connection: the first thing that a request does. sqlsession calls Try, or TryHere of
// question.go, which leaves to Try what is not granted; speaker.go has the wait that follows a refusal.

package pglock

import (
	"fmt"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit/sqlsession"
	"github.com/jackc/pgx/v5/pgconn"
)

// How a session tries for a lock.

// Try runs stmtTry. If the server answers with an error it may have taken the lock before, so Leave gives it back
// first; only then may the statement be run again. If that fails too, the session may still have the lock, and the
// error matches sqlsession.ErrUnsure.
func (s *speaker) Try(e *sqlsession.Entry) (a sqlsession.Answer, err error) {
	num, st := numberOf(e), inMode(e, stmtTry, stmtTryShared)
	for range interruptions {
		found, last, err := s.ask(e)
		switch {
		case err == nil && len(found) == 1:
			return grantIn(found), nil
		case err == nil:
			if a, err = s.refused(e, num, last); err == nil || s.c.Err() != nil {
				return a, err
			}
		case s.c.Err() != nil:
			return a, s.unasked(st, err)
		}
		if failed := s.Leave(e); failed != nil {
			return a, fmt.Errorf("%w: %w (after: %w)", sqlsession.ErrUnsure, failed, err)
		}
		if !isPassing(err) || e.Stopped() {
			return a, err
		}
	}
	return a, errInterrupted
}

// unasked marks the error that has ended a session if the statement did not reach it: the statement was not prepared
// yet, the server had ended the session for idleness before, or nothing of the statement was written. Then the core may
// ask again over another connection, without a second hold anywhere.
func (s *speaker) unasked(st statement, err error) error {
	if !s.prepared[st] || stateOf(err) == stateIdle || pgconn.SafeToRetry(err) {
		return fmt.Errorf("%w: %w", sqlsession.ErrUnasked, err)
	}
	return err
}

// ask runs a try, which may have been begun in another goroutine. A caller that does not wait gets the row of who is in
// the way as well, in last.
func (s *speaker) ask(e *sqlsession.Entry) (found, last rows, err error) {
	all, err := s.answers(tryLines(e))
	switch {
	case all == nil:
		return nil, nil, err
	case e.Request.Try:
		last = append(all[1], make([][]byte, 6)) //nolint:gocritic // the rows belong to this answer alone
	}
	return all[0], last, err
}

// tryLines are what a try asks. A caller that does not wait hears in the same round trip who is in the way. One that
// waits is told later, over another statement, because a free lock costs less without.
func tryLines(e *sqlsession.Entry) []line {
	num := numberOf(e)
	try := line{inMode(e, stmtTry, stmtTryShared), grantParams(e, num)}
	if !e.Request.Try {
		return []line{try}
	}
	return []line{try, {stmtWho, [][]byte{int8Value(num)}}}
}

// refused finds out why a try has returned no token. If the row is not the lock's own, the lock may have been taken
// under a number of another name: then it is given back. If there is no row, whoever has the lock has not yet written
// it.
func (s *speaker) refused(e *sqlsession.Entry, num int64, found rows) (a sqlsession.Answer, err error) {
	if found == nil {
		if found, err = s.exec(stmtWho, int8Value(num)); err != nil {
			return a, err
		}
		found = append(found, make([][]byte, 6))
	}
	last := found[0]
	own := last[0] != nil && string(last[1]) == string(e.Request.Kind) && string(last[2]) == e.Request.Name
	a.Foreign = !own && last[0] != nil
	if !own && !s.isElsewhere(e) {
		if err := s.Leave(e); err != nil {
			return a, err // Try asks once more
		}
	}
	a.Held = s.inTheWayOf(e, num, last)
	if !a.Foreign && !e.Request.Try {
		s.d.core.Hint(lockOf(num), hotFor) // the next requests for it go straight to the queue
	}
	return a, nil
}

// isElsewhere reports that another session has the lock, so this one does not. It returns false if that is not known.
func (s *speaker) isElsewhere(e *sqlsession.Entry) bool {
	found, err := s.exec(inMode(e, stmtElsewhere, stmtElsewhereShared), int8Value(numberOf(e)))
	return err == nil && len(found) == 1 && boolOf(found[0][0])
}

// inTheWayOf says who is in the way of e. The row of the lock names the one who was granted it last. A reader among
// several may have left before the others, so a caller that does not wait has the holders looked up, for another round
// trip; a wait names nobody and is told later.
func (s *speaker) inTheWayOf(e *sqlsession.Entry, num int64, last [][]byte) *driver.HeldError {
	switch {
	case e.Request.Kind == driver.KindMutex:
		return heldBy(e.Request.Key, last)
	case e.Request.Try:
		if holders, err := s.look(num); err == nil {
			return heldError(e.Request.Key, holders)
		}
	}
	return e.HeldBySomebody()
}

// grantIn reads the row of a statement that has taken the lock. The server counts a block by its first and last token.
func grantIn(found rows) sqlsession.Answer {
	token, last := uint64(int64Of(found[0][0])), uint64(int64Of(found[0][1]))
	return sqlsession.Answer{Granted: true, Token: token, Tokens: int(last-token) + 1}
}
