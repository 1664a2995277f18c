package etcdlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/servers"
)

// guarded is a server with a user who may read and write the keys, as an operator gave it the right to.
func guarded(t *testing.T) *servers.EtcdNode {
	t.Helper()
	s := servers.EtcdServer(t, &servers.EtcdOptions{Password: password})
	do(t, s, "auth/role/add", map[string]any{"name": "app"})
	do(t, s, "auth/user/add", map[string]any{"name": "app", "password": password})
	do(t, s, "auth/user/grant", map[string]any{"user": "app", "role": "app"})
	allow(t, s, "READWRITE")
	return s
}

// allow changes what the user may do with the keys.
func allow(t *testing.T, s *servers.EtcdNode, what string) {
	t.Helper()
	do(t, s, "auth/role/grant", map[string]any{"name": "app", "perm": map[string]any{
		"permType": what, "key": b64("interlock/"), "range_end": b64("interlock0"),
	}})
}

// appURL is the address for that user.
func appURL(s *servers.EtcdNode) string { return "etcd://app:" + password + "@" + s.Addr() }

// A release that is refused keeps the lock closed until the session ends, which it does although its process lives on.
func TestRelease_ThatIsRefused_EndsWithTheSession(t *testing.T) {
	t.Parallel()
	s := guarded(t)
	a := openLocks(t, appURL(s), &interlock.Options{Lease: brief})
	b := openLocks(t, userURL(s.Addr()), &interlock.Options{Lease: calm})
	held, other := mustLock(t, a, "lock"), mustLock(t, a, "other")
	allow(t, s, "READ")
	if err := held.Unlock(patient(t)); !errors.Is(err, interlock.ErrRefused) {
		t.Fatalf("Unlock says %v, want a refusal", err)
	}
	if _, err := a.TryLock(patient(t), "new"); !errors.Is(err, interlock.ErrRefused) {
		t.Errorf("TryLock of another lock says %v, want a refusal", err)
	}
	l := mustLock(t, b, "lock")
	receive(t, "the owner of the other hold to be told", other.Lost())
	var why *interlock.LostError
	if !errors.As(other.Err(), &why) || why.Reason != "session" && why.Reason != "unconfirmed" {
		t.Errorf("the other hold was lost by %v, want its session", other.Err())
	}
	allow(t, s, "READWRITE")
	mustUnlock(t, l)
	mustUnlock(t, mustLock(t, a, "lock"))
	noneLeft(t, s)
}

// So does the place of a waiter that gave up.
func TestWithdrawal_ThatIsRefused_EndsWithTheSession(t *testing.T) {
	t.Parallel()
	s := guarded(t)
	watch := newNews()
	a := openLocks(t, appURL(s), &interlock.Options{Lease: brief, Observer: watch.Observer()})
	b := openLocks(t, userURL(s.Addr()), &interlock.Options{Lease: calm})
	held := mustLock(t, b, "lock")
	ctx, cancel := context.WithCancel(context.Background())
	gaveUp := make(chan error, 1)
	go func() { // ends with ctx
		_, err := a.Lock(ctx, "lock")
		gaveUp <- err
	}()
	receive(t, "the waiter to be queued", watch.Queued)
	allow(t, s, "READ")
	cancel()
	if err := receive(t, "the waiter to give up", gaveUp); !errors.Is(err, context.Canceled) {
		t.Errorf("the waiter gave up with %v", err)
	}
	mustUnlock(t, held)
	mustUnlock(t, mustLock(t, b, "lock"))
	noneLeft(t, s)
}

// Without the right to anything nobody can show that a session lasts.
func TestPasswordChanged_HoldsAreLostInTime_AndNothingStays(t *testing.T) {
	t.Parallel()
	s := guarded(t)
	a := openLocks(t, appURL(s), &interlock.Options{Lease: brief})
	b := openLocks(t, userURL(s.Addr()), &interlock.Options{Lease: calm})
	held, released := mustLock(t, a, "held"), mustLock(t, a, "released")
	<-time.After(brief / 2) // real: the stream of signs of life is open, and needs no password any more
	do(t, s, "auth/user/changepw", map[string]any{"name": "app", "password": "another"})
	if err := released.Unlock(patient(t)); !errors.Is(err, interlock.ErrRefused) {
		t.Errorf("Unlock says %v, want a refusal", err)
	}
	l := mustLock(t, b, "held")
	if held.Err() == nil {
		t.Error("two are in, by their own word")
	}
	mustUnlock(t, l)
	mustUnlock(t, mustLock(t, b, "released"))
	noneLeft(t, s)
}

// A refusal that passes before the session ends costs nothing.
func TestRelease_ThatIsRefusedForAMoment_LeavesTheSession(t *testing.T) {
	t.Parallel()
	s := guarded(t)
	a := openLocks(t, appURL(s), &interlock.Options{Lease: calm})
	b := openLocks(t, userURL(s.Addr()), &interlock.Options{Lease: calm})
	held, other := mustLock(t, a, "lock"), mustLock(t, a, "other")
	allow(t, s, "READ")
	if err := held.Unlock(patient(t)); !errors.Is(err, interlock.ErrRefused) {
		t.Fatalf("Unlock says %v, want a refusal", err)
	}
	allow(t, s, "READWRITE")
	mustUnlock(t, mustLock(t, b, "lock"))
	mustUnlock(t, mustLock(t, a, "new"))
	if err := other.Err(); err != nil {
		t.Errorf("the other hold is lost: %v", err)
	}
	mustUnlock(t, other)
	noneLeft(t, s)
}
