// The part of TestSharing_OnEveryEngine in which many come at once; sharing_test.go has what comes in order.

package main

import (
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/interlock-go/interlock"
)

// crowd lets readers and writers of both clients in as they come, some of them by an upgrade.
func (s *sharers) crowd() {
	s.t.Helper()
	seed := rand.Uint64()
	s.t.Logf("seed %d", seed)
	var inside atomic.Int64 // readers, or -1000 for a writer
	enter := func(n int64) {
		if now := inside.Add(n); now < -1000 || now < 0 && now != -1000 {
			s.t.Errorf("%d are inside", now)
		}
		inside.Add(-n)
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			m := []*interlock.Client{s.one, s.two}[i%2].RWMutex("crowd", nil)
			for range 10 {
				s.visit(m, r.IntN(4), enter)
			}
		})
	}
	all.Wait()
}

func (s *sharers) visit(m *interlock.RWMutex, how int, enter func(int64)) {
	take := m.RLock
	switch how {
	case 0:
		take = m.Lock
	case 1:
		take = m.UpgradeableRLock
	}
	l, err := take(s.t.Context())
	if errors.Is(err, interlock.ErrUnsupported) {
		return
	}
	if err != nil {
		s.t.Error(err)
		return
	}
	if how == 0 {
		enter(-1000)
	} else {
		enter(1)
	}
	if how == 1 {
		if err := l.Upgrade(s.t.Context()); err != nil {
			s.t.Errorf("Upgrade: %v", err)
		}
		enter(-1000)
	}
	if err := l.Unlock(s.t.Context()); err != nil {
		s.t.Errorf("Unlock: %v", err)
	}
}
