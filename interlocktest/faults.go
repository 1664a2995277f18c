package interlocktest

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/drivertest/faulty"
)

// The faults that a test can switch on and off, and what it can count. Package faulty, between each client and the
// store's memory, applies them.

// faults are the faults at present. The zero value is none.
type faults struct {
	down       bool
	noRenewals bool
	delay      time.Duration
	lost       [ops]bool // by kind of request: its replies are lost
}

// Causes of failures that a test has asked for.
var (
	errDown = errors.New("interlocktest: the test has made the engine unavailable")
	errLost = errors.New("interlocktest: the test has lost the reply; the request was carried out")
)

// rules are the faults as package faulty takes them. They concern requests that are under way too, but for the delay.
// What a watch tells is never lost.
func (f *faults) rules() (all []faulty.Rule) {
	for kind, its := range operations {
		for _, op := range its {
			lose := func(part faulty.Part, why error) {
				all = append(all, faulty.Rule{Standing: true, Op: op, Drop: part, Err: why})
			}
			if f.down {
				lose(faulty.Request, errDown)
				lose(faulty.Reply, errDown)
			}
			if f.lost[kind] {
				lose(faulty.Reply, errLost)
			}
			if op == faulty.Renew && f.noRenewals {
				lose(faulty.Request, errDown)
			}
			if op != faulty.Renew && f.delay > 0 {
				all = append(all, faulty.Rule{Op: op, Before: f.delay})
			}
		}
	}
	return all
}

// SetDown makes the engine unavailable, or available again. Requests fail with interlock.ErrUnavailable and have no
// effect. A request that waits goes on waiting, but is not told of its grant. Holds last for as long as they are
// trusted, and are then lost (interlock.LostUnconfirmed).
func (s *Store) SetDown(down bool) { s.change(func(f *faults) { f.down = down }) }

// FailRenewals makes only renewals fail, with interlock.ErrUnavailable, or lets them succeed again. Holds are lost when
// their trust window ends.
func (s *Store) FailRenewals(fail bool) { s.change(func(f *faults) { f.noRenewals = fail }) }

// LoseReplies loses the replies to one kind of request, or lets them arrive again. The engine carries the request out,
// and the client gets interlock.ErrUnavailable. The client takes back what it may have been granted in this way, and
// repeats a release. Holds whose renewals get no reply are lost when their trust window ends; the engine keeps them for
// longer.
func (s *Store) LoseReplies(op Op, lose bool) {
	s.t.Helper()
	s.check(op)
	s.change(func(f *faults) { f.lost[op] = lose })
}

// SetDelay makes each request take d longer before it has an effect. Renewals are not delayed.
func (s *Store) SetDelay(d time.Duration) { s.change(func(f *faults) { f.delay = d }) }

// Lose ends all holds of a lock, as an operator does by interlock break. The leases are lost with interlock.LostBroken,
// and the next waiter gets the lock. If nobody holds the lock, Lose ends the test, which would otherwise test nothing.
func (s *Store) Lose(kind interlock.Kind, name string) {
	s.t.Helper()
	ctx, key := context.WithoutCancel(s.t.Context()), driver.Key{Kind: kind, Name: name}
	info, err := s.root.Look(ctx, key)
	broken := 0
	for _, h := range info.Holders {
		switch failed := s.root.Break(ctx, key, h.Token); {
		case failed == nil:
			broken++
		case errors.Is(failed, driver.ErrNotHeld), errors.Is(failed, driver.ErrHeld):
			// It has ended since the look: with another hold of the same owner, or by its owner.
		default:
			err = errors.Join(err, failed)
		}
	}
	if err == nil && broken == 0 {
		err = driver.ErrNotHeld
	}
	if err != nil {
		s.t.Fatalf("interlocktest: lose %s %q: %v", kind, name, err)
	}
}

// Suspend makes c a process that stood still for d and does not know it yet, like one whose virtual machine was paused.
// Time has passed for the engine, and not for c. Locks of c whose lease has ended are free, and the next waiter gets
// them, while c still trusts its leases. It learns of the loss from the reply to its next request; only a fence refuses
// what it writes until then. c must be a client of this store.
func (s *Store) Suspend(c *interlock.Client, d time.Duration) {
	s.t.Helper()
	s.mu.Lock()
	clients := s.clients
	s.mu.Unlock()
	at := slices.IndexFunc(clients, func(m member) bool { return m.client == c })
	switch {
	case at < 0:
		s.t.Fatal("interlocktest: Suspend: the client is not one that this store's Client returned")
	case d <= 0:
		s.t.Fatalf("interlocktest: Suspend: %v is no time to stand still for", d)
	default:
		_ = clients[at].memory.Stall(d) // it fails once the store is closed, when nothing is held
	}
}

// Requests returns how many requests of that kind all clients have sent so far, failed ones included: what a program
// costs a server. Renewals of several holds travel together and count one each. What the client settles by itself, such
// as a pass to the next goroutine of the process, is no request.
func (s *Store) Requests(op Op) int {
	s.t.Helper()
	s.check(op)
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, m := range s.clients {
		for _, o := range operations[op] {
			n += m.control.Calls(o)
		}
	}
	return n
}

// check ends the test if there is no such kind of request.
func (s *Store) check(op Op) {
	s.t.Helper()
	if op >= ops {
		s.t.Fatalf("interlocktest: there is no Op %d; use OpAcquire, OpRenew, OpRelease or OpOther", op)
	}
}

// change changes the faults.
func (s *Store) change(f func(*faults)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.faults)
	for _, m := range s.clients {
		m.control.Rules(s.faults.rules()...)
	}
}
