//go:build linux

package filelock

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
)

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

// The timer is not set at every release. So when it fires and the file was in use in between, it must be set again.
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

// The timer may fire late. The turn must end in time all the same.
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
