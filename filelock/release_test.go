//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package filelock

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
)

func TestRelease_ByAnotherHold_IsRefusedAndChangesNothing(t *testing.T) {
	d := open(t, t.TempDir())
	holder := newID()
	mustTry(t, d, holder, "x")
	for name, r := range map[string]*driver.Release{
		"an unknown ID":            {Key: mutex("x"), ID: newID()},
		"the ID with another name": {Key: mutex("y"), ID: holder},
		"the ID with another kind": {Key: driver.Key{Kind: driver.KindRWMutex, Name: "x"}, ID: holder},
	} {
		if err := d.Release(context.Background(), r); !errors.Is(err, driver.ErrLost) {
			t.Errorf("%s: %v, want ErrLost", name, err)
		}
	}
	if _, err := try(d, newID(), "x"); !errors.Is(err, driver.ErrHeld) {
		t.Errorf("the lock is not held any more: %v", err)
	}
	release(t, d, holder, "x")
	if err := d.Release(context.Background(), &driver.Release{Key: mutex("x"), ID: holder}); !errors.Is(err,
		driver.ErrLost) {
		t.Errorf("the second release: %v, want ErrLost", err)
	}
}

func TestRelease_WithAnEndedContext_Works(t *testing.T) {
	d := open(t, t.TempDir())
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	id := newID()
	mustTry(t, d, id, "x")
	if err := d.Release(ctx, &driver.Release{Key: mutex("x"), ID: id}); err != nil {
		t.Error(err)
	}
	mustTry(t, d, newID(), "x")
}

func TestAcquire_OfAnIDThatHolds_AnswersTheSameGrant(t *testing.T) {
	d := open(t, t.TempDir())
	id := newID()
	first := mustTry(t, d, id, "x")
	if second := mustTry(t, d, id, "x"); second != first {
		t.Errorf("got %+v, want %+v", second, first)
	}
	release(t, d, id, "x")
	if _, err := try(d, id, "x"); !errors.Is(err, driver.ErrLost) {
		t.Errorf("the ID asked again after its release: %v, want ErrLost", err)
	}
	mustTry(t, d, newID(), "x")
}

func TestAcquire_OfAnIDThatWaits_AnswersWithIt(t *testing.T) {
	d := open(t, t.TempDir())
	holder, id := newID(), newID()
	mustTry(t, d, holder, "x")
	w := startWaiting(t, d, id, "x")
	second := make(chan outcome, 1)
	go func() {
		g, err := d.Acquire(context.Background(), request(id, "x"))
		second <- outcome{g, err}
	}()
	if _, err := d.Acquire(withTimeout(t, time.Millisecond), request(id, "x")); !errors.Is(err,
		context.DeadlineExceeded) {
		t.Errorf("a copy whose context ends: %v", err)
	}
	release(t, d, holder, "x")
	first := w.end(t)
	if got := <-second; got.err != nil || got != first {
		t.Errorf("got %+v and %+v", first, got)
	}
}

func TestUndo_InEveryState_LeavesNothing(t *testing.T) {
	undo := func(d *Driver, id string, horizon time.Duration) error {
		return d.Release(context.Background(), &driver.Release{Key: mutex("x"), ID: id, Undo: true, Horizon: horizon})
	}
	t.Run("never asked", func(t *testing.T) {
		d, id := open(t, t.TempDir()), newID()
		if err := undo(d, id, time.Hour); err != nil {
			t.Fatal(err)
		}
		if _, err := try(d, id, "x"); !errors.Is(err, driver.ErrLost) {
			t.Errorf("a late copy: %v, want ErrLost", err)
		}
		mustTry(t, d, newID(), "x")
	})
	t.Run("held", func(t *testing.T) {
		d, id := open(t, t.TempDir()), newID()
		mustTry(t, d, id, "x")
		for range 2 {
			if err := undo(d, id, time.Hour); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := try(d, id, "x"); !errors.Is(err, driver.ErrLost) {
			t.Errorf("a late copy: %v, want ErrLost", err)
		}
		mustTry(t, d, newID(), "x")
	})
	t.Run("waiting", func(t *testing.T) {
		d, holder, id := open(t, t.TempDir()), newID(), newID()
		mustTry(t, d, holder, "x")
		w := startWaiting(t, d, id, "x")
		if err := undo(d, id, time.Hour); err != nil {
			t.Fatal(err)
		}
		if o := w.end(t); !errors.Is(o.err, driver.ErrLost) {
			t.Errorf("the waiter got %+v, want ErrLost", o)
		}
		release(t, d, holder, "x")
		mustTry(t, d, newID(), "x")
	})
	t.Run("while it is granted", func(t *testing.T) {
		d := open(t, t.TempDir())
		for range 200 {
			id, over := newID(), make(chan error, 1)
			go func() {
				_, err := d.Acquire(context.Background(), request(id, "x"))
				over <- err
			}()
			if err := undo(d, id, time.Minute); err != nil {
				t.Fatal(err)
			}
			if err := <-over; err != nil && !errors.Is(err, driver.ErrLost) {
				t.Fatal(err)
			}
			next := newID()
			mustTry(t, d, next, "x")
			release(t, d, next, "x")
		}
	})
}

func TestAcquire_OfWhatFilesCannotDo_IsUnsupported(t *testing.T) {
	d := open(t, t.TempDir())
	for name, change := range map[string]func(*driver.Request){
		"named owner": func(r *driver.Request) { r.Named = true },
		"shared":      func(r *driver.Request) { r.Mode = driver.Shared },
		"upgradeable": func(r *driver.Request) { r.Mode = driver.Upgradeable },
		"semaphore":   func(r *driver.Request) { r.Kind = driver.KindSemaphore },
	} {
		r := request(newID(), "x")
		change(r)
		if _, err := d.Acquire(context.Background(), r); !errors.Is(err, driver.ErrUnsupported) {
			t.Errorf("%s: %v, want ErrUnsupported", name, err)
		}
	}
	if got := list(t, d, ""); len(got) != 0 {
		t.Errorf("held: %+v", got)
	}
}
