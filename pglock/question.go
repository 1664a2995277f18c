// A try or an unlock in the caller's own goroutine, which saves two switches of goroutines in each: sqlsession lends
// the connection to the caller (lend.go there), and gate.go lets it leave in time. What is not decided here is decided
// by speaker.go and try.go in the connection's goroutine.

package pglock

import (
	"context"

	"github.com/interlock-go/interlock/enginekit/sqlsession"
)

// How a question is asked in the goroutine of the caller that wants the answer; see sqlsession.Prompt.

// question is prepared statements that were sent, and their answers as far as they were received. It outlives the
// goroutine that has begun it: speaker.begun keeps it for the connection's own goroutine.
type question struct {
	*conversation
	found    []rows // one for each statement
	received bool   // all answers, or the one that has ended the session
	err      error  // the first error of an answer
}

// question returns the question that was begun in another goroutine, or sends a new one. A begun one is always about
// the same request: the core hands it on before anything else runs on the connection.
func (s *speaker) question(lines []line) (*question, error) {
	if q := s.begun; q != nil {
		s.begun = nil
		return q, nil
	}
	x, err := s.say(s.d.opts.Timeout, lines...)
	if err != nil {
		return nil, err
	}
	return &question{conversation: x, found: make([]rows, len(lines))}, nil
}

// answers asks and receives all answers. It returns nil rows if nothing was sent, so that the caller knows that the
// server has done nothing.
func (s *speaker) answers(lines []line) ([]rows, error) {
	q, err := s.question(lines)
	if err != nil {
		return nil, err
	}
	err = q.end(q.receiveAll())
	return q.found, err
}

// receiveAll receives all answers, and returns the first error, or the one that has ended the session, which outweighs
// any other.
func (q *question) receiveAll() error {
	for i := 0; !q.received && i < len(q.found) && !isBroken(q.err); i++ {
		var err error
		if q.found[i], err = q.receive(); q.err == nil || isBroken(err) {
			q.err = err
		}
	}
	q.received = true
	return q.err
}

// over is a context that has ended. SyncConn with it reports whether all that the client library has received was read
// to the end, without asking the server. Only then does the gate begin at the boundary of a message, where complete may
// count.
var over = func() context.Context {
	ctx, cancel := context.WithCancel(background)
	cancel()
	return ctx
}()

// askInline asks in the caller's goroutine, which leaves at the deadline of the socket. wanted says whether the first
// answer is the good one.
//
// If it returns false, either nothing was asked, because a statement has to be prepared first or something must be
// read before; or the question is kept in begun with the answer as far as that has come, and the connection's own
// goroutine reads the rest. The statement is never sent twice.
func (s *speaker) askInline(lines []line, wanted func(found rows) bool) (*question, bool) {
	for _, l := range lines {
		if !s.prepared[l.st] {
			return nil, false
		}
	}
	if s.pg.SyncConn(over) != nil {
		return nil, false
	}
	q, err := s.question(lines)
	if err != nil {
		return nil, false // only preparing can fail here, and all is prepared, so nothing was sent
	}
	if q.unsent != nil || !s.gate.await(len(lines)) || q.receiveAll() != nil || !wanted(q.found[0]) {
		s.begun = q
		return nil, false
	}
	return q, q.end(nil) == nil
}

// TryHere runs a try. It leaves every answer but a grant to Try, in the connection's goroutine.
func (s *speaker) TryHere(e *sqlsession.Entry) (a sqlsession.Answer, granted bool) {
	q, granted := s.askInline(tryLines(e), func(found rows) bool { return len(found) == 1 })
	if granted {
		a = grantIn(q.found[0])
	}
	return a, granted
}

// UnlockHere gives the lock back, and leaves to Unlock what goes wrong.
func (s *speaker) UnlockHere(e *sqlsession.Entry) bool {
	_, done := s.askInline(unlockLines(e), func(found rows) bool { return unlocked(found) == nil })
	return done
}
