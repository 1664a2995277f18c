// Retiring a session whose releases are refused. release.go reports refusals, heartbeat.go ends the session.
//
// A key whose deletion the servers refuse (a right was taken away, a password changed) ends with its session. With each
// sign of life it would last longer: the lock would stay closed for as long as the process lives. So such a session
// takes no new locks; new requests get another one. Holds that it still has are trusted as before, but it gives no sign
// of life after the last of them has ended, or when the servers have refused for a whole timeout. Meanwhile the
// portable layer repeats the releases, and a session that was heard out goes on.

package etcdlock

import (
	"errors"
	"time"

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
		s.hearOut(id)
		return err
	case !isRefusal(err): // no answer says nothing about what was refused before
		return err
	case s.lost == nil:
		s.retire(id)
		return err
	case undo:
		return nil
	}
	return lost(e.r.Key, e.token(), driver.LostSession, s.lost)
}

// retire records that the servers refuse to end the request. The caller holds Driver.mu.
func (s *session) retire(id holdID) {
	if len(s.unreleased) == 0 {
		s.unreleased, s.refusedSince = make(map[holdID]struct{}), time.Now()
	}
	s.unreleased[id] = struct{}{}
	if s.d.current == s {
		s.d.current = nil
	}
}

// hearOut records that the servers do not refuse to end the request any more. The caller holds Driver.mu.
func (s *session) hearOut(id holdID) {
	delete(s.unreleased, id)
	if len(s.unreleased) > 0 {
		return
	}
	s.refusedSince = time.Time{}
	if d := s.d; d.current == nil && d.making == nil && s.lost == nil {
		d.current = s
	}
}

// isRetired reports whether new requests do not use the session. The caller holds Driver.mu.
func (s *session) isRetired() bool {
	return len(s.unreleased) > 0 || s.d.current != nil && s.d.current != s
}

// spent returns why the session must give no further sign of life, or nil.
func (s *session) spent(now time.Time) error {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	switch refused := len(s.unreleased) > 0; {
	case refused && (len(s.holds) == 0 || now.Sub(s.refusedSince) >= s.timeout):
		return errUnreleased
	case !refused && s.isRetired() && !s.isUsed():
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
