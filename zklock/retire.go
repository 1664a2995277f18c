// Retiring a session: a server refuses to remove what it has left in queues, so the session itself must end. release.go
// and watch.go tell of refusals; the keeper looks whether it is time.
//
// Signs of life keep all nodes of a session. If a right is taken from the client while it has a lock, its release is
// refused, and the lock would stay closed for as long as the client lives. Only the end of the session removes the node
// then, for which nobody needs a right.

package zklock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/interlock-go/interlock/driver"
)

// errRetired ends a session that could not remove what it had left.
var errRetired = errors.New("zk: the servers refuse to remove a node of the session")

// leftovers are nodes of a session that the servers refuse to remove. Driver.mu guards them.
type leftovers struct {
	since   map[string]time.Time // by the node's path: when a removal was first refused
	why     error                // the latest refusal
	retires time.Time            // since when the session grants nothing any more; zero while it does
}

// removal records what a server has said to the removal of a node of this session. An answer that the node is gone ends
// what an earlier refusal has begun.
func (s *session) removal(path string, err error) {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	switch {
	case err == nil, errors.Is(err, zk.ErrNoNode):
		if delete(s.left.since, path); len(s.left.since) == 0 {
			s.left.retires = time.Time{} // somebody has mended the cause in time
		}
	case isRefusal(err):
		s.left.why = err
		if _, known := s.left.since[path]; !known {
			s.left.since[path] = time.Now()
		}
	}
}

// retire ends the session if a removal has been refused for one timeout. From then on it grants nothing; it goes on for
// its last trusted holds, but for no longer than another timeout. The keeper calls it now and then.
func (s *session) retire(now time.Time) {
	s.d.mu.Lock()
	due := !s.left.retires.IsZero()
	for _, since := range s.left.since {
		due = due || now.Sub(since) >= s.timeout
	}
	if !due {
		s.d.mu.Unlock()
		return
	}
	if s.left.retires.IsZero() {
		s.left.retires = now
	}
	over, why := now.Sub(s.left.retires) >= s.timeout || !s.hasTrusted(), s.left.why
	s.d.mu.Unlock()
	if over {
		s.end(fmt.Errorf("%w: %w", errRetired, why))
	}
}

// hasTrusted reports whether an owner has a hold of the session that it has not released. The caller holds Driver.mu.
func (s *session) hasTrusted() bool {
	for e := range s.holds {
		if !e.ending {
			return true
		}
	}
	return false
}

// admit blocks while the session grants nothing any more, for reach at most. It returns nil if it grants, and errOver
// when the next session has to. Otherwise the error says what the servers refuse.
func (s *session) admit(ctx context.Context, gone <-chan struct{}, reach time.Duration) error {
	s.d.mu.Lock()
	retires, why := !s.left.retires.IsZero(), s.left.why
	s.d.mu.Unlock()
	if !retires {
		return nil
	}
	timer := time.NewTimer(reach)
	defer timer.Stop()
	select {
	case <-s.over:
		return errOver
	case <-gone:
		return driver.ErrLost
	case <-ctx.Done():
	case <-timer.C:
	}
	return fmt.Errorf("%w: %w", errRetired, why)
}
