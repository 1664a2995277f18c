package faulty_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/drivertest/broken"
	"github.com/interlock-go/interlock/drivertest/faulty"
	"github.com/interlock-go/interlock/memlock"
)

// bare has no optional interface; the others have those that a wrapper must not have in vain.
type bare struct{ driver.Driver }

type requeuer struct {
	driver.Driver
	driver.Requeuer
}

type starter struct {
	driver.Driver
	driver.Starter
}

func TestWrap_HasRequeueAndBeginIfTheInnerDriverHas(t *testing.T) {
	for _, inner := range []driver.Driver{bare{}, requeuer{}, starter{}, memlock.New(nil), broken.NewStore(broken.None).Client()} {
		d, _ := faulty.Wrap(inner, 1)
		same[driver.Requeuer](t, inner, d)
		same[driver.Starter](t, inner, d)
	}
}

func same[T any](t *testing.T, inner, wrapped driver.Driver) {
	t.Helper()
	_, want := inner.(T)
	if _, got := wrapped.(T); got != want {
		t.Errorf("%T has %T: %v; wrapped: %v", inner, (*T)(nil), want, got)
	}
}

func TestWrap_SaysUnsupportedForWhatTheInnerDriverDoesNotHave(t *testing.T) {
	d, _ := faulty.Wrap(bare{}, 1)
	if err := d.(driver.Breaker).Break(t.Context(), key, 1); !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("break says %v, want ErrUnsupported", err)
	}
}

// begin is for a world whose drivers have Begin.
func begin(w *world, id string) (waits bool, err error) {
	_, err = w.call(func(ctx context.Context) error {
		_, waits, err = w.bad.(driver.Starter).Begin(ctx, ask(id))
		return err
	})
	return waits, err
}

// inBroken is in, over a sound engine that has Begin.
func inBroken(t *testing.T, f func(w *world), rules ...faulty.Rule) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		store := broken.NewStore(broken.None)
		w := &world{T: t, healthy: store.Client()}
		w.bad, w.c = faulty.Wrap(store.Client(), 1, rules...)
		defer w.bad.Close()
		f(w)
	})
}

func TestBegin_PassesOnWhetherItWaits(t *testing.T) {
	inBroken(t, func(w *world) {
		if waits, err := begin(w, "a"); err != nil || waits {
			w.Errorf("begin of a free lock: waits is %v, error %v", waits, err)
		}
		if waits, err := begin(w, "b"); err != nil || !waits {
			w.Errorf("begin of a held lock: waits is %v, error %v", waits, err)
		}
	})
}

func TestBegin_WithALostReply_HasHappenedAndDoesNotSayThatItWaits(t *testing.T) {
	inBroken(t, func(w *world) {
		_, err := w.healthy.Acquire(w.Context(), ask("holder"))
		w.says(err, nil)
		waits, err := begin(w, "a")
		w.says(err, driver.ErrUnavailable)
		if waits {
			w.Error("it says that it waits, and that nobody knows")
		}
		w.says(w.healthy.Release(w.Context(), &driver.Release{Key: key, ID: "holder"}), nil)
		if !w.isHeld() {
			w.Error("what has begun was not granted")
		}
	}, faulty.Rule{Op: faulty.Begin, Drop: faulty.Reply})
}

// slow is a driver whose Begin tells that it waits, and says so, once go on is closed.
type slow struct {
	driver.Driver
	goOn chan struct{}
}

func (s slow) Begin(_ context.Context, r *driver.Request) (g driver.Grant, waits bool, err error) {
	<-s.goOn
	r.Waiting(&driver.HeldError{})
	return g, true, nil
}

func TestResume_TellsBeforeItAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := slow{goOn: make(chan struct{})}
		d, c := faulty.Wrap(inner, 1)
		told := 0
		r := ask("a")
		r.Waiting = func(*driver.HeldError) { told++ }
		returned := make(chan int, 1)
		go func() {
			_, _, _ = d.(driver.Starter).Begin(t.Context(), r) // slow has no errors
			returned <- told
		}()
		synctest.Wait()
		c.Pause()
		close(inner.goOn)
		synctest.Wait()
		if len(returned) > 0 {
			t.Fatal("a reply came through a server that hangs")
		}
		c.Resume()
		if <-returned != 1 {
			t.Error("Begin returned before Waiting was called")
		}
	})
}
