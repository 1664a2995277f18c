package pglock

import (
	"context"

	"github.com/interlock-go/interlock/enginekit/sqlsession"
)

// How a question is asked in the goroutine of who wants the answer; see sqlsession.Prompt.

// question is prepared statements that were sent, and their answers as far as they were heard.
type question struct {
	*conversation
	found    []rows
	received bool
	err      error
}

// question returns what was begun, or else sends it.
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

// answers asks and receives. It returns no rows at all if nothing was asked.
func (s *speaker) answers(lines []line) ([]rows, error) {
	q, err := s.question(lines)
	if err != nil {
		return nil, err
	}
	err = q.end(q.receiveAll())
	return q.found, err
}

// receiveAll hears all answers, and returns the first error, or the one that has ended the session.
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

// over is a context that has ended. With it the client library says whether all that it has received was read to the
// end, without asking the server: then the next thing in the gate is the beginning of a message.
var over = func() context.Context {
	ctx, cancel := context.WithCancel(background)
	cancel()
	return ctx
}()

// askInline asks in a goroutine that leaves at the deadline of the socket. If it returns false the question is kept
// with the answer, as far as that has come; or it was not asked, because statements are to be prepared for it or
// something is to be read before.
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
		return nil, false // nothing can fail but to prepare
	}
	if q.unsent != nil || !s.gate.await(len(lines)) || q.receiveAll() != nil || !wanted(q.found[0]) {
		s.begun = q
		return nil, false
	}
	return q, q.end(nil) == nil
}

// TryHere runs a try, and leaves it to Try if the lock is not free.
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
