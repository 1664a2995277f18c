//go:build linux

package filelock

import (
	"context"
	"errors"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
)

func TestLinger_TakenOver_GivesALargerTokenAndTellsTheNewOwner(t *testing.T) {
	l := newLooper(t, t.TempDir())
	l.linger()
	for range 100 {
		before := l.last
		l.take()
		if l.last.Token <= before.Token+uint64(before.Tokens)-1 {
			t.Fatalf("%+v after %+v", l.last, before)
		}
		if l.free() {
			t.Fatal("another gets in beside the hold")
		}
		r, err := readRecord(l.wait.fd, 0)
		if err != nil || r.First != l.last.Token || r.Owner != "owner of "+l.id {
			t.Fatalf("the record is %+v, %v", r, err)
		}
		if !isHeld(l.wait.fd) {
			t.Fatal("the hold has no mark")
		}
		l.release()
		if l.free() {
			t.Fatal("the lock was free in between")
		}
	}
}

// A take-over does not read the record again. So what the driver remembers must be the last token of the whole block.
func TestLinger_TakenOver_GoesOnBehindTheLastTokenOfTheBlock(t *testing.T) {
	l := newLooper(t, t.TempDir())
	l.linger()
	clock := time.Now().Add(time.Hour)
	l.d.now = func() time.Time { return clock }
	var before driver.Grant
	for i := range 4 {
		r := request(newID(), "x")
		r.Try, r.Tokens = true, 5
		g, err := l.d.Acquire(context.Background(), r)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 && g.Tokens != 5 {
			t.Fatalf("%+v, want a block", g)
		}
		if i > 0 && g.Token != before.Token+uint64(before.Tokens) {
			t.Fatalf("%+v after %+v", g, before)
		}
		before = g
		release(t, l.d, r.ID, "x")
	}
}

func TestLinger_ARequestThatMustNotBeGranted_LeavesItAlone(t *testing.T) {
	l := newLooper(t, t.TempDir())
	l.linger()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := l.d.Acquire(ctx, request(newID(), "x")); !errors.Is(err, context.Canceled) {
		t.Errorf("with a cancelled context: %v", err)
	}
	undone := newID()
	for _, id := range []string{l.id, undone} {
		undo := driver.Release{Key: mutex("x"), ID: id, Undo: true, Horizon: time.Minute}
		if err := l.d.Release(context.Background(), &undo); err != nil {
			t.Errorf("undo: %v", err)
		}
		if _, err := try(l.d, id, "x"); !errors.Is(err, driver.ErrLost) {
			t.Errorf("a request that was undone or released before: %v", err)
		}
	}
	if _, err := l.d.File(mutex("x")); !errors.Is(err, driver.ErrNotHeld) {
		t.Errorf("the descriptor of a lock that lingers: %v", err)
	}
	if l.free() {
		t.Error("the lock does not linger any more")
	}
	l.take()
}

func TestLinger_UndoneDuringTheTakeOver_LeavesNothing(t *testing.T) {
	l := newLooper(t, t.TempDir())
	for range 300 {
		for range 2 { // the first one may be without a turn: what was undone closes its file
			l.acquire()
			l.release()
		}
		if l.free() {
			t.Fatal("the lock does not linger")
		}
		id := newID()
		var undo sync.WaitGroup
		undo.Go(func() {
			r := driver.Release{Key: mutex("x"), ID: id, Undo: true, Horizon: time.Minute}
			if err := l.d.Release(context.Background(), &r); err != nil {
				t.Error(err)
			}
		})
		_, err := l.d.Acquire(context.Background(), request(id, "x"))
		undo.Wait()
		if err != nil && !errors.Is(err, driver.ErrLost) {
			t.Fatal(err)
		}
		l.d.stopLingering()
		if !l.free() {
			t.Fatal("the lock is held by nobody")
		}
	}
}

// Removing a file in use without its lock leads to two locks. That must not last for the rest of the turn.
func TestLinger_OnAFileThatWasRemovedWithoutItsLock_IsNotTakenOver(t *testing.T) {
	l := newLooper(t, t.TempDir())
	l.linger()
	path := l.d.path(mutex("x"))
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	spin(2 * lookAround)
	l.take()
	l.mustBeFree("in the removed file")
	fresh := openFile(t, l.d, "x")
	if err := fresh.tryLock(); err != syscall.EWOULDBLOCK {
		t.Errorf("the hold is not on the file at the path: %v", err)
	}
}
