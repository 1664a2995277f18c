// Retiring a session: a server refuses to remove what it has left in queues, so the session itself must end. release.go
// and watch.go tell of refusals; the keeper looks whether it is time.
//
// When that is, enginekit.Refusals says: without further holds at once, and after one timeout in any case. Until then
// the session grants nothing; requests wait for the next one, and those that stand in a queue stay there.

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

// removal records what a server has said to the removal of a node of this session. An answer that the node is gone ends
// what an earlier refusal has begun, and wakes the requests that wait for that.
func (s *session) removal(path string, err error) {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	switch {
	case err == nil, errors.Is(err, zk.ErrNoNode):
		if s.refused.Settled(path) {
			s.d.changed()
		}
	case isRefusal(err):
		s.refused.Refused(path, err)
	}
}

// retire ends the session if it has refusals and no trusted hold, or has had one for a timeout. The keeper calls it now
// and then.
func (s *session) retire() {
	s.d.mu.Lock()
	over, why := s.refused.Spent(s.timeout, s.hasTrusted()), s.refused.Err()
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

// admit blocks while the session grants nothing, for reach at most. It returns nil if it grants, and errOver when the
// next session has to. Otherwise the error says what the servers refuse.
func (s *session) admit(ctx context.Context, gone <-chan struct{}, reach time.Duration) error {
	var patience <-chan time.Time
	for {
		s.d.mu.Lock()
		why, stir := s.refused.Err(), s.d.stir
		s.d.mu.Unlock()
		if why == nil {
			return nil
		}
		if patience == nil { // made late, because there nearly always is nothing that is refused
			timer := time.NewTimer(reach)
			defer timer.Stop()
			patience = timer.C
		}
		select {
		case <-stir:
		case <-s.over:
			return errOver
		case <-gone:
			return driver.ErrLost
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", errRetired, why)
		case <-patience:
			return fmt.Errorf("%w: %w", errRetired, why)
		}
	}
}
