//go:build linux

package filelock

import (
	"context"
	"errors"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// looper is a driver that comes back to the lock x at once, while somebody waits. Its lingering does not end by itself.
type looper struct {
	*testing.T
	d    *Driver
	wait *lockFile // who waits
	last driver.Grant
	id   string // of the present hold
}

func newLooper(t *testing.T, dir string) *looper {
	t.Helper()
	l := &looper{T: t, d: open(t, dir)}
	l.d.pace = endless
	l.take()
	l.wait = openFile(t, l.d, "x")
	l.wait.joinLine()
	l.release()
	return l
}

// take takes the lock, which is free or lingers.
func (l *looper) take() {
	l.Helper()
	l.id = newID()
	l.last = mustTry(l, l.d, l.id, "x")
}

// acquire takes the lock, and waits if it has to.
func (l *looper) acquire() {
	l.Helper()
	l.id = newID()
	if _, err := l.d.Acquire(withTimeout(l.T, 10*time.Second), request(l.id, "x")); err != nil {
		l.Fatal(err)
	}
}

func (l *looper) release() {
	l.Helper()
	release(l, l.d, l.id, "x")
}

// linger has the lock linger.
func (l *looper) linger() {
	l.Helper()
	l.take()
	l.release()
	if l.free() {
		l.Fatal("the lock is free after the release, although its turn lasts")
	}
}

// free reports whether the waiter could have the lock.
func (l *looper) free() bool {
	l.Helper()
	err := l.wait.tryLock()
	if err != nil && err != syscall.EWOULDBLOCK {
		l.Fatal(err)
	}
	if err == nil {
		_ = flock(l.wait.fd, syscall.LOCK_UN)
	}
	return err == nil
}

func (l *looper) mustBeFree(when string) {
	l.Helper()
	if !l.free() {
		l.Errorf("the lock is not free %s", when)
	}
}

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
		r, err := readRecord(l.wait.fd)
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

// The last token is not read again, so what is remembered of it must be the whole block.
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

func TestLinger_IfNobodyComesBack_EndsByItself(t *testing.T) {
	l := newLooper(t, t.TempDir())
	l.take()
	l.d.pace.comeback = 5 * time.Millisecond
	l.release()
	eventually(t, "the lock is free", l.free)
	if isHeld(l.wait.fd) {
		t.Error("the mark of the holder is left")
	}
	eventually(t, "the file lies idle", func() bool {
		l.d.mu.Lock()
		defer l.d.mu.Unlock()
		f := l.d.idle.take(mutex("x"))
		if f == nil {
			return false
		}
		l.d.idle.put(f)
		return !f.linger.on && !f.turn.back
	})
}

// The timer is not set at every release. So it must go on when it finds that the file was in use in between.
func TestLinger_AfterAnother_EndsByItselfToo(t *testing.T) {
	l := newLooper(t, t.TempDir())
	for range 5 {
		for range 4 {
			l.acquire() // also if it comes too late
			l.d.pace.comeback = 2 * time.Millisecond
			l.release()
			l.d.pace = endless
			spin(time.Millisecond)
		}
		eventually(t, "the lock is free", l.free)
		eventually(t, "the file lies idle", func() bool {
			l.d.mu.Lock()
			defer l.d.mu.Unlock()
			return l.d.idle.slots != [len(l.d.idle.slots)]*lockFile{}
		})
	}
}

func TestLinger_EndsWithItsTurn(t *testing.T) {
	now := time.Now()
	p := usualPace()
	for _, row := range []struct{ began, want time.Duration }{
		{0, p.comeback},
		{p.turn - p.comeback/4, p.comeback / 4},
	} {
		f := &lockFile{turn: turn{began: now.Add(-row.began)}}
		if f.stay(p, now); f.linger.until.Sub(now) != row.want {
			t.Errorf("%v after the turn began it lingers for %v", row.began, f.linger.until.Sub(now))
		}
	}
	l := newLooper(t, t.TempDir())
	l.take()
	l.d.pace.turn = 0
	l.release()
	l.mustBeFree("after a release at the end of the turn")
}

// The timer may be late. The turn ends all the same.
func TestLinger_WhoComesBackAfterItsEnd_StandsInTheLine(t *testing.T) {
	l := newLooper(t, t.TempDir())
	l.linger()
	l.d.mu.Lock()
	for _, f := range l.d.idle.slots {
		if f != nil {
			f.linger.until = time.Now()
			f.turn.began = time.Time{}
		}
	}
	l.d.mu.Unlock()
	if _, err := try(l.d, newID(), "x"); !errors.Is(err, driver.ErrHeld) {
		t.Errorf("got %v", err)
	}
	l.mustBeFree("after the late come-back")
	if f := l.d.idle.take(mutex("x")); f == nil || !f.turn.back {
		t.Error("the refused try has forgotten that the driver came back")
	} else {
		f.close()
	}
}

func TestLinger_IsOnlyForWhoComesBackWhileOthersWait(t *testing.T) {
	for name, act := range map[string]func(*looper){
		"nobody waits": func(l *looper) {
			l.linger()
			l.take()
			l.wait.leaveLine()
			spin(2 * lookAround)
			l.release()
		},
		"the last time it did not come back": func(l *looper) {
			l.linger()
			l.d.pace.comeback = 0
			l.d.stopLingering()
			l.acquire()
			l.d.pace = endless
			l.release()
		},
		"nobody waited when it was got": func(l *looper) {
			l.wait.leaveLine()
			l.take()
			l.wait.joinLine()
			l.release()
		},
		"the descriptor was handed out": func(l *looper) {
			l.linger()
			l.take()
			f, err := l.d.File(mutex("x"))
			if err != nil {
				l.Fatal(err)
			}
			defer f.Close()
			l.release()
		},
		"it is undone": func(l *looper) {
			l.linger()
			l.take()
			undo := driver.Release{Key: mutex("x"), ID: l.id, Undo: true, Horizon: time.Minute}
			if err := l.d.Release(context.Background(), &undo); err != nil {
				l.Fatal(err)
			}
			if _, err := try(l.d, newID(), "x"); !errors.Is(err, driver.ErrHeld) {
				l.Errorf("a try after the undo, in front of who waits: %v", err)
			}
		},
		"an inspection comes": func(l *looper) {
			l.linger()
			if found := list(l.T, l.d, ""); len(found) > 0 {
				l.Errorf("listed: %+v", found)
			}
		},
		"the driver is closed": func(l *looper) {
			l.linger()
			_ = l.d.Close()
		},
		"the driver was closed before": func(l *looper) {
			l.linger()
			l.take()
			_ = l.d.Close()
			_ = l.d.Release(context.Background(), &driver.Release{Key: mutex("x"), ID: l.id})
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLooper(t, t.TempDir())
			act(l)
			l.mustBeFree("at once")
		})
	}
}

func TestLinger_AfterMinHold_DoesNotComeOnTop(t *testing.T) {
	l := newLooper(t, t.TempDir())
	l.linger()
	l.take()
	r := driver.Release{Key: mutex("x"), ID: l.id, Keep: time.Millisecond}
	if err := l.d.Release(context.Background(), &r); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the lock is free", l.free)
}

func TestLinger_LeavesNothingAfterClose(t *testing.T) {
	goroutines, files := runtime.NumGoroutine(), descriptors(t)
	dir := t.TempDir()
	for range 20 {
		l := newLooper(t, dir)
		l.linger()
		l.take()
		l.d.pace.comeback = 200 * time.Microsecond // the timer fires at about the time of Close
		l.release()
		spin(150 * time.Microsecond)
		_ = l.d.Close()
		l.mustBeFree("after Close")
		l.wait.close()
	}
	eventually(t, "the goroutines have ended", func() bool { return runtime.NumGoroutine() <= goroutines })
	if n := descriptors(t); n > files {
		t.Errorf("%d descriptors, %d before", n, files)
	}
}

func TestLinger_OfAKilledProcess_IsFreeAtOnce(t *testing.T) {
	t.Setenv(lingerVar, "1")
	dir := t.TempDir()
	p := startProcess(t, dir)
	p.token("try 1 x")
	l := &looper{T: t, d: open(t, dir)}
	l.wait = openFile(t, l.d, "x")
	l.wait.joinLine()
	for _, command := range []string{"release 1 x", "try 2 x", "release 2 x"} {
		p.ask(command)
	}
	if l.free() {
		t.Fatal("the process does not linger")
	}
	p.kill()
	l.mustBeFree("after the kill")
}

func TestLinger_AWaiterInAnotherProcess_GetsInAlthoughOthersLoop(t *testing.T) {
	dir := t.TempDir()
	d, p := open(t, dir), startProcess(t, dir)
	stop := keepLooping(t, d)
	defer stop()
	for range 20 {
		id := newID()
		p.token("lock %s x", id)
		if got := p.ask("release %s x", id); got != "ok" {
			t.Fatal(got)
		}
	}
}

func TestLinger_AnotherGoroutineOfTheDriver_GetsInAlthoughOneLoops(t *testing.T) {
	d := open(t, t.TempDir())
	w := openFile(t, d, "x")
	w.joinLine()
	stop := keepLooping(t, d)
	defer stop()
	for range 50 {
		id := newID()
		if _, err := d.Acquire(withTimeout(t, 10*time.Second), request(id, "x")); err != nil {
			t.Fatal(err)
		}
		release(t, d, id, "x")
	}
}

// keepLooping takes and releases the lock x until stop is called.
func keepLooping(t *testing.T, d *Driver) (stop func()) {
	var over atomic.Bool
	var all sync.WaitGroup
	all.Go(func() {
		for !over.Load() {
			id := newID()
			if _, err := d.Acquire(context.Background(), request(id, "x")); err != nil {
				t.Error(err)
				return
			}
			if err := d.Release(context.Background(), &driver.Release{Key: mutex("x"), ID: id}); err != nil {
				t.Error(err)
				return
			}
		}
	})
	return func() {
		over.Store(true)
		all.Wait()
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

// Who removes a file without its lock while it is in use gets two locks. That must not last for the rest of the turn.
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
