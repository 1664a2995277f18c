package resourcelock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/adapters/resourcelock"
	"github.com/interlock-go/interlock/interlocktest"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection"
	rl "k8s.io/client-go/tools/leaderelection/resourcelock"
)

// patience is more than any step takes beside other work.
const patience = 30 * time.Second

// candidate is an elector of client-go that runs over a Lock.
type candidate struct {
	name             string
	lock             *resourcelock.Lock
	cancel           context.CancelFunc
	started, stopped chan struct{} // one value for each term
	ended            chan struct{}
}

// inside notes who leads. Two at once fail the test.
type inside struct {
	t  *testing.T
	mu sync.Mutex
	by string
}

func (i *inside) enter(name string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.by != "" {
		i.t.Errorf("%s leads while %s does", name, i.by)
	}
	i.by = name
}

func (i *inside) leave(name string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.by == name {
		i.by = ""
	}
}

// campaign starts an elector with a client of its own, as another process has one. It leaves in when its work is told
// to end, which is before OnStoppedLeading.
func campaign(t *testing.T, store *interlocktest.Store, in *inside, name string) *candidate {
	t.Helper()
	lock, err := resourcelock.New(store.Client(nil), "controller", name)
	if err != nil {
		t.Fatal(err)
	}
	c := &candidate{
		name: name, lock: lock, ended: make(chan struct{}),
		started: make(chan struct{}, 100), stopped: make(chan struct{}, 100),
	}
	ctx, cancel := lock.Context(t.Context())
	c.cancel = cancel
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 100 * time.Millisecond,
		ReleaseOnCancel: true, Name: name,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				in.enter(name)
				c.started <- struct{}{}
				<-ctx.Done()
				in.leave(name)
			},
			OnStoppedLeading: func() { c.stopped <- struct{}{} },
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	go func() { // ends with ctx
		defer close(c.ended)
		elector.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-c.ended
	})
	return c
}

func hears(t *testing.T, what string, from <-chan struct{}) {
	t.Helper()
	select {
	case <-from:
	case <-time.After(patience):
		t.Fatalf("waited %v for %s", patience, what)
	}
}

// leader waits until one of them leads, and returns it and the other.
func leader(t *testing.T, a, b *candidate) (leads, waits *candidate) {
	t.Helper()
	select {
	case <-a.started:
		return a, b
	case <-b.started:
		return b, a
	case <-time.After(patience):
		t.Fatal("nobody leads")
		return nil, nil
	}
}

func TestElector_ThatResigns_IsFollowedAtOnce(t *testing.T) {
	t.Parallel()
	store, in := interlocktest.New(t, nil), &inside{t: t}
	leads, waits := leader(t, campaign(t, store, in, "a"), campaign(t, store, in, "b"))
	if _, ok := waits.lock.Stamp(); ok {
		t.Error("who waits has a stamp")
	}
	first, ok := leads.lock.Stamp()
	if !ok {
		t.Error("who leads has no stamp")
	}
	leads.cancel()
	hears(t, "the leader to stop", leads.stopped)
	hears(t, "the next one to lead", waits.started)
	if next, ok := waits.lock.Stamp(); !ok || next.Token <= first.Token {
		t.Errorf("the stamp after %v is %v", first, next)
	}
}

// client-go's own locks let an elector lead on until RenewDeadline is over. Here its work ends with the hold.
func TestElector_WhoseLeadIsTaken_StopsAtOnceAndMayLeadAgain(t *testing.T) {
	t.Parallel()
	store, in := interlocktest.New(t, nil), &inside{t: t}
	leads, waits := leader(t, campaign(t, store, in, "a"), campaign(t, store, in, "b"))
	in.leave(leads.name) // who breaks a hold does not wait until its owner has heard of it
	store.Lose(interlock.KindElection, "controller")
	hears(t, "the leader to stop", leads.stopped)
	hears(t, "its elector to end", leads.ended)
	hears(t, "the next one to lead", waits.started)
}

func TestElector_WithoutTheEngine_StopsBeforeAnotherLeads(t *testing.T) {
	t.Parallel()
	store, in := interlocktest.New(t, nil), &inside{t: t}
	leads, waits := leader(t, campaign(t, store, in, "a"), campaign(t, store, in, "b"))
	store.SetDown(true)
	hears(t, "the leader to stop", leads.stopped)
	store.SetDown(false)
	hears(t, "the next one to lead", waits.started)
}

// Between a loss and the moment when the elector has stopped, another context would not hear of it any more.
func TestContext_MadeAfterALoss_HasEnded(t *testing.T) {
	t.Parallel()
	store := interlocktest.New(t, nil)
	lock, err := resourcelock.New(store.Client(nil), "controller", "a")
	if err != nil {
		t.Fatal(err)
	}
	term := rl.LeaderElectionRecord{HolderIdentity: "a", LeaseDurationSeconds: 3}
	if err := lock.Create(t.Context(), term); err != nil {
		t.Fatal(err)
	}
	first, cancel := lock.Context(t.Context())
	defer cancel()
	store.Lose(interlock.KindElection, "controller")
	hears(t, "the loss", first.Done())
	second, cancel := lock.Context(t.Context())
	defer cancel()
	if cause := context.Cause(second); !errors.Is(cause, interlock.ErrLost) {
		t.Errorf("the cause is %v", cause)
	}
}

// The records are what other tools and candidates see.
func TestLock_SaysWhoLeads(t *testing.T) {
	t.Parallel()
	store := interlocktest.New(t, nil)
	lock := func(identity string) *resourcelock.Lock {
		l, err := resourcelock.New(store.Client(nil), "controller", identity)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	a, b := lock("a"), lock("b")
	if _, _, err := a.Get(t.Context()); !apierrors.IsNotFound(err) {
		t.Errorf("without a leader: %v", err)
	}
	term := rl.LeaderElectionRecord{HolderIdentity: "a", LeaseDurationSeconds: 3, LeaderTransitions: 7}
	if err := a.Create(t.Context(), term); err != nil {
		t.Fatal(err)
	}
	var held *interlock.HeldError
	other := rl.LeaderElectionRecord{HolderIdentity: "b", LeaseDurationSeconds: 3}
	if err := b.Create(t.Context(), other); !errors.As(err, &held) {
		t.Errorf("beside a leader: %v", err)
	}
	for _, l := range []*resourcelock.Lock{a, b} {
		r, first, err := l.Get(t.Context())
		if err != nil || r.HolderIdentity != "a" || r.LeaderTransitions != 7 || r.LeaseDurationSeconds != 3 {
			t.Errorf("%s sees %+v, %v", l.Identity(), r, err)
		}
		if _, again, err := l.Get(t.Context()); err != nil || string(again) == string(first) {
			t.Errorf("%s observes the same record twice, %v", l.Identity(), err)
		}
	}
	if err := a.Update(t.Context(), other); err == nil {
		t.Error("a candidate writes the record of another")
	}
	if err := a.Update(t.Context(), rl.LeaderElectionRecord{}); err != nil { // as an elector that resigns
		t.Error(err)
	}
	if r, _, err := b.Get(t.Context()); err != nil || r.HolderIdentity != "" {
		t.Errorf("after the leader has resigned: %+v, %v", r, err)
	}
}

func TestNew_RefusesIdentitiesThatDoNotFit(t *testing.T) {
	c := interlocktest.New(t, nil).Client(nil)
	for _, identity := range []string{"", fmt.Sprintf("%0133d", 1)} {
		if _, err := resourcelock.New(c, "controller", identity); err == nil {
			t.Errorf("%q is accepted", identity)
		}
	}
	if _, err := resourcelock.New(c, "controller", fmt.Sprintf("%0132d", 1)); err != nil {
		t.Error(err)
	}
}
