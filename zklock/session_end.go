// The end of a session: why, what it takes along, and the goodbye. session.go has what comes before.

package zklock

import (
	"errors"
	"time"

	"github.com/interlock-go/interlock/driver"
)

var (
	// errOver ends what belongs to a session that is over.
	errOver = errors.New("zk: the session is over")

	// errShorter ends a session whose timeout a server has made shorter. Each server bounds the timeout anew when the
	// session comes back to it, and the servers then count by that. The owners of holds rely on the longer one, and
	// what Confirmed has promised cannot be taken back. So they are told that the holds are lost.
	errShorter = errors.New("zk: a server has made the session's timeout shorter")

	// errUnclear ends a session that a server may have made shorter: see doubt. It is also what lets a client go on
	// whose servers come back with older data: they refuse, without a word, all that have seen newer data, and a new
	// session has seen none.
	errUnclear = errors.New("zk: a server may have made the session's timeout shorter, and none has answered since")
)

// end ends the session, once. Its holds are lost, and its waiters begin again in the next session. Owners are told
// after the holds are out of the driver, so an owner that asks at once finds no hold of the old session.
func (s *session) end(cause error) {
	s.d.mu.Lock()
	if s.cause != nil {
		s.d.mu.Unlock()
		return
	}
	// In one step with what follows: a hold that is granted now either finds the cause, or is in holds and is told.
	s.cause = cause
	s.linked, s.link = false, nil
	if !s.d.closed {
		s.d.opts.Logger.Warn("zk: session lost", "session", s.name(), "holds", len(s.holds), "err", cause)
	}
	close(s.over)
	lost := make([]*entry, 0, len(s.holds))
	for e := range s.holds {
		lost = append(lost, e)
	}
	tell := s.d.lose(lost, driver.LostSession, cause)
	s.d.changed()
	s.d.mu.Unlock()
	s.line.hangUp()
	tell() // outside of the mutex: it is the users' code
	close(s.told)
}

// close says goodbye to the servers, which then remove the session's nodes at once. It waits for farewell at most.
// After that, or if the servers have ended the session, it cuts the connection, and the library ends by itself. Only a
// goodbye frees the holds at once; a connection that is merely cut leaves them until the session's timeout.
func (s *session) close() {
	timer := time.NewTimer(farewell)
	defer timer.Stop()
	over := s.over
	// The servers still have the session. But nobody gets its locks before their owners know.
	if s.endedByUs() {
		select {
		case <-s.told:
			over = nil // it is closed already, and the goodbye has the rest of farewell
		case <-timer.C:
			s.line.cut() // so that no goodbye arrives; over ends the wait below at once
		}
	}
	said := make(chan struct{})
	s.d.calls.Go(func() { // the library waits for a second or two
		s.conn.Close()
		close(said)
	})
	select {
	case <-said:
	case <-timer.C:
	case <-over:
	}
	s.line.hangUp()
	s.line.cut()
}

// farewell bounds the goodbye: servers that do not answer end the session by its timeout.
const farewell = 500 * time.Millisecond

// endedByUs reports whether the session was ended here, while the servers may still have it.
func (s *session) endedByUs() bool {
	cause := s.endedBy()
	return errors.Is(cause, errShorter) || errors.Is(cause, errUnclear) || errors.Is(cause, errRetired)
}

// endedBy returns why the session is over, or nil while it lives.
func (s *session) endedBy() error {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	return s.cause
}
