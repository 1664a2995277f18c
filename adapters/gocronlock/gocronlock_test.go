package gocronlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/adapters/gocronlock"
	_ "github.com/interlock-go/interlock/memlock"
)

func client(t *testing.T) *interlock.Client {
	t.Helper()
	c, err := interlock.Open(t.Context(), "mem://"+t.Name(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// patience is how long something that must happen may take.
const patience = 20 * time.Second

// await fails the test if nothing comes.
func await[T any](t *testing.T, what string, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		t.Fatalf("waited in vain for %s", what)
	}
	return v
}

// host is a scheduler with one job that is due now.
type host struct {
	scheduler gocron.Scheduler
	running   chan struct{} // the job has begun
	goOn      chan struct{} // it may end
	ended     chan struct{} // gocron says that it has
	refused   chan error    // why it was not run
}

func newHost(t *testing.T, option gocron.SchedulerOption) *host {
	t.Helper()
	h := &host{
		running: make(chan struct{}, 1), goOn: make(chan struct{}), ended: make(chan struct{}, 1),
		refused: make(chan error, 1),
	}
	var err error
	if h.scheduler, err = gocron.NewScheduler(option); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.scheduler.Shutdown() })
	_, err = h.scheduler.NewJob(gocron.OneTimeJob(gocron.OneTimeJobStartImmediately()),
		gocron.NewTask(func() { h.running <- struct{}{}; <-h.goOn }),
		gocron.WithName("nightly"),
		gocron.WithEventListeners(
			gocron.AfterJobRuns(func(uuid.UUID, string) { h.ended <- struct{}{} }),
			gocron.AfterLockError(func(_ uuid.UUID, _ string, err error) { h.refused <- err }),
		))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestLocker_RunsAJobOnOneSchedulerAtATime(t *testing.T) {
	first := newHost(t, gocron.WithDistributedLocker(gocronlock.NewLocker(client(t), nil)))
	second := newHost(t, gocron.WithDistributedLocker(gocronlock.NewLocker(client(t), nil)))
	first.scheduler.Start()
	await(t, "the first run", first.running)
	second.scheduler.Start()
	if err := await(t, "the refusal of the second run", second.refused); !errors.Is(err, interlock.ErrHeld) {
		t.Errorf("the second run is refused with %v; want ErrHeld", err)
	}
	close(first.goOn)
	await(t, "the end of the first run", first.ended)
	if err := first.scheduler.Shutdown(); err != nil { // waits for the job, and with it for its Unlock
		t.Error(err)
	}
	lease, err := client(t).TryLock(t.Context(), "gocron:nightly")
	if err != nil {
		t.Fatalf("the lock was not released after the run: %v", err)
	}
	if err := lease.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestLocker_WithMinHold_RefusesASchedulerWhoseClockIsLate: the first run is over when the second is due.
func TestLocker_WithMinHold_RefusesASchedulerWhoseClockIsLate(t *testing.T) {
	opts := &interlock.LockOptions{MinHold: time.Hour}
	first, second := gocronlock.NewLocker(client(t), opts), gocronlock.NewLocker(client(t), opts)
	lock, err := first.Lock(t.Context(), "nightly")
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
	if lock, err := second.Lock(t.Context(), "nightly"); !errors.Is(err, interlock.ErrHeld) || lock != nil {
		t.Errorf("the late one: %v, %v; want ErrHeld", lock, err)
	}
}

func TestLocker_OfALockThatCannotBeTaken_SaysWhy(t *testing.T) {
	l := gocronlock.NewLocker(client(t), &interlock.LockOptions{Lease: -time.Second})
	if lock, err := l.Lock(t.Context(), "nightly"); err == nil || errors.Is(err, interlock.ErrHeld) || lock != nil {
		t.Errorf("with options that are wrong: %v, %v", lock, err)
	}
}

func TestElector_HasOneLeader_UntilItResigns(t *testing.T) {
	ctx := t.Context()
	first := gocronlock.NewElector(client(t).Mutex("leader", nil))
	second := gocronlock.NewElector(client(t).Mutex("leader", nil))
	if err := errors.Join(first.IsLeader(ctx), first.IsLeader(ctx)); err != nil {
		t.Fatalf("the first does not lead: %v", err)
	}
	if err := second.IsLeader(ctx); !errors.Is(err, gocronlock.ErrNotLeader) || !errors.Is(err, interlock.ErrHeld) {
		t.Errorf("the second: %v; want ErrNotLeader", err)
	}
	if err := errors.Join(second.Resign(ctx), first.IsLeader(ctx)); err != nil {
		t.Errorf("one who does not lead has resigned for the leader: %v", err)
	}
	if err := errors.Join(first.Resign(ctx), second.IsLeader(ctx)); err != nil {
		t.Errorf("after the first has resigned: %v", err)
	}
	if err := first.IsLeader(ctx); !errors.Is(err, gocronlock.ErrNotLeader) {
		t.Errorf("the first leads beside the second: %v", err)
	}
}

func TestElector_ThatHasLostItsLock_LeadsAgainOnlyIfItIsFree(t *testing.T) {
	ctx, c := t.Context(), client(t)
	first := gocronlock.NewElector(c.Mutex("leader", nil))
	second := gocronlock.NewElector(client(t).Mutex("leader", nil))
	if err := first.IsLeader(ctx); err != nil {
		t.Fatal(err)
	}
	depose(t, c)
	if err := second.IsLeader(ctx); err != nil {
		t.Errorf("the second, after the first was deposed: %v", err)
	}
	if err := first.IsLeader(ctx); !errors.Is(err, gocronlock.ErrNotLeader) {
		t.Errorf("the first, deposed: %v; want ErrNotLeader", err)
	}
	if err := second.Resign(ctx); err != nil {
		t.Fatal(err)
	}
	if err := first.IsLeader(ctx); err != nil {
		t.Errorf("the first, when nobody leads: %v", err)
	}
	depose(t, c)
	if err := first.Resign(ctx); err != nil {
		t.Errorf("one who was deposed resigns: %v", err)
	}
}

// depose breaks the leader's lock.
func depose(t *testing.T, c *interlock.Client) {
	t.Helper()
	for info, err := range c.List(t.Context(), "leader") {
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Break(t.Context(), info.Kind, info.Name, info.Holders[0].Token); err != nil {
			t.Fatal(err)
		}
	}
}

func TestElector_WhoseEngineIsGone_SaysSo_AndEndsWithTheContext(t *testing.T) {
	c := client(t)
	e := gocronlock.NewElector(c.Mutex("leader", nil))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := e.IsLeader(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v", err)
	}
	_ = c.Close()
	if err := e.IsLeader(t.Context()); !errors.Is(err, interlock.ErrClosed) {
		t.Errorf("after Close: %v; want ErrClosed", err)
	}
}

func TestElector_InAScheduler_RunsTheLeadersJobsOnly(t *testing.T) {
	leader := gocronlock.NewElector(client(t).Mutex("leader", nil))
	other := gocronlock.NewElector(client(t).Mutex("leader", nil))
	if err := leader.IsLeader(t.Context()); err != nil {
		t.Fatal(err)
	}
	asked := make(chan error, 1)
	idle := newHost(t, gocron.WithDistributedElector(told{other, asked}))
	idle.scheduler.Start()
	if err := await(t, "the other's question", asked); !errors.Is(err, gocronlock.ErrNotLeader) {
		t.Errorf("the other scheduler is told %v; want ErrNotLeader", err)
	}
	busy := newHost(t, gocron.WithDistributedElector(leader))
	busy.scheduler.Start()
	await(t, "the leader's run", busy.running)
	close(busy.goOn)
	select {
	case <-idle.running:
		t.Error("the job runs where nobody leads")
	default:
	}
	close(idle.goOn)
}

// told is an elector whose answers are heard.
type told struct {
	gocron.Elector
	answers chan<- error
}

func (e told) IsLeader(ctx context.Context) error {
	err := e.Elector.IsLeader(ctx)
	select {
	case e.answers <- err:
	default:
	}
	return err
}

func TestNew_WithoutWhatItNeeds_PanicsAtOnce(t *testing.T) {
	for what, construct := range map[string]func(){
		"needs a mutex":  func() { gocronlock.NewElector(nil) },
		"needs a client": func() { gocronlock.NewLocker(nil, nil) },
	} {
		func() {
			defer func() {
				if said, _ := recover().(string); !strings.Contains(said, what) {
					t.Errorf("it said %q, want %q", said, what)
				}
			}()
			construct()
		}()
	}
}
