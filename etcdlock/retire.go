// Retiring a session whose releases are refused. release.go reports refusals, heartbeat.go ends the session.
//
// When that is, enginekit.Refusals says. Until then the session takes no new locks; new requests get another one. Holds
// that it still has are trusted as before. Meanwhile the portable layer repeats the releases, and a session that was
// heard out goes on.

package etcdlock

import (
	"errors"

	"github.com/interlock-go/interlock/driver"
)

var (
	// errUnreleased is the cause of a session that was given up because its releases are refused.
	errUnreleased = errors.New("etcd: the servers refuse to end what was released, so the session ends with it")

	// errReplaced is the cause of one that has nothing left, and that new requests do not use.
	errReplaced = errors.New("etcd: the session was replaced and has nothing left")
)

// answered records what became of a release or a withdrawal of e, which has been under way. It returns the error that
// the caller gets: once the session is over, what the servers refuse to end ends by itself.
func (d *Driver) answered(e *entry, undo bool, err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	s, id := e.session, holdID{e.r.Key, e.r.ID}
	switch {
	case s == nil:
		return err
	case err == nil, errors.Is(err, driver.ErrLost), errors.Is(err, errUnsure): // nothing is left
		if s.refused.Settled(id) && d.current == nil && d.making == nil && s.lost == nil {
			d.current = s
		}
		return err
	case !isRefusal(err): // no answer says nothing about what was refused before
		return err
	case s.lost == nil:
		s.refused.Refused(id, err)
		if d.current == s {
			d.current = nil
		}
		return err
	case undo:
		return nil
	}
	return lost(e.r.Key, e.token(), driver.LostSession, s.lost)
}

// isRetired reports whether new requests do not use the session. The caller holds Driver.mu.
func (s *session) isRetired() bool {
	return s.refused.Err() != nil || s.d.current != nil && s.d.current != s
}

// spent returns why the session must give no further sign of life, or nil.
func (s *session) spent() error {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	switch {
	case s.refused.Spent(s.timeout, len(s.holds) > 0):
		return errUnreleased
	case s.refused.Err() == nil && s.isRetired() && !s.isUsed():
		return errReplaced
	}
	return nil
}

// isUsed reports whether any request has a key in the session, or may have. The caller holds Driver.mu.
func (s *session) isUsed() bool {
	for _, e := range s.d.entries {
		if e.session == s && e.ended == "" {
			return true
		}
	}
	return len(s.holds) > 0
}
