//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package filelock

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/interlock-go/interlock/driver"
)

func TestAcquire_ByManyGoroutinesOfSeveralDrivers_LetsOneInAtATime(t *testing.T) {
	const goroutines, rounds = 8, 50
	dir := t.TempDir()
	drivers := []*Driver{open(t, dir), open(t, dir)}
	var inside, total atomic.Int32 // atomic because the race detector does not see a flock between two drivers
	var all sync.WaitGroup
	for g := range goroutines {
		d := drivers[g%len(drivers)]
		all.Go(func() {
			for range rounds {
				id := newID()
				if _, err := d.Acquire(context.Background(), request(id, "x")); err != nil {
					t.Error(err)
					return
				}
				if n := inside.Add(1); n != 1 {
					t.Errorf("%d are inside", n)
				}
				total.Add(1)
				inside.Add(-1)
				if err := d.Release(context.Background(), &driver.Release{Key: mutex("x"), ID: id}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if n := total.Load(); n != goroutines*rounds {
		t.Errorf("%d acquisitions, want %d", n, goroutines*rounds)
	}
}

func TestTry_WhileAnotherProcessHolds_NamesTheHolder(t *testing.T) {
	dir := t.TempDir()
	d, p := open(t, dir), startProcess(t, dir)
	token := p.token("lock 1 nightly")
	_, err := try(d, newID(), "nightly")
	var held *driver.HeldError
	if !errors.As(err, &held) {
		t.Fatalf("try: %v, want a HeldError", err)
	}
	want := driver.HeldError{
		Kind: driver.KindMutex, Name: "nightly", Owner: "owner of 1", Client: "client of 1", Token: token,
		Since: held.Since,
	}
	if *held != want || held.Since.IsZero() {
		t.Errorf("got %+v, want %+v and an instant", held, want)
	}
	if !driver.IsDefinite(err) {
		t.Error("the error is not definite")
	}
	if got := p.ask("release 1 nightly"); got != "ok" {
		t.Fatal(got)
	}
	mustTry(t, d, newID(), "nightly")
}

func TestHold_OfAKilledProcess_IsFreeAtOnce(t *testing.T) {
	dir := t.TempDir()
	d, p := open(t, dir), startProcess(t, dir)
	first := p.token("lock 1 nightly")
	w := startWaiting(t, d, newID(), "nightly")
	p.kill()
	o := w.end(t)
	if o.err != nil || o.grant.Token <= first {
		t.Errorf("after the kill: %+v, want a token above %d", o, first)
	}
}

func TestWaiter_ThatIsKilled_LeavesTheLine(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	holder := newID()
	mustTry(t, d, holder, "x")
	p := startProcess(t, dir)
	p.send("lock 1 x")
	f := openFile(t, d, "x")
	eventually(t, "the process stands in the line", f.othersWait)
	p.kill()
	release(t, d, holder, "x")
	mustTry(t, d, newID(), "x")
}

func TestClient_ThatIsKilled_LosesAllItsLocks_AndNobodyElseLosesAny(t *testing.T) {
	dir := t.TempDir()
	d, dead, other := open(t, dir), startProcess(t, dir), startProcess(t, dir)
	names := []string{"a", "b", "c"}
	for i, name := range names {
		dead.token("lock %d %s", i, name)
	}
	other.token("lock 9 d")
	dead.kill()
	for _, name := range names {
		mustTry(t, d, newID(), name)
	}
	if _, err := try(d, newID(), "d"); !errors.Is(err, driver.ErrHeld) {
		t.Errorf("the lock of a client that lives: %v", err)
	}
	if said := other.ask("release 9 d"); said != "ok" {
		t.Errorf("the client that lives releases its lock: %s", said)
	}
}

func TestWaiter_ThatIsKilled_KeepsOutNobodyBehindIt(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	holder := newID()
	mustTry(t, d, holder, "x")
	p := startProcess(t, dir)
	p.send("lock 1 x")
	f := openFile(t, d, "x")
	eventually(t, "the process stands in the line", f.othersWait)
	behind := startWaiting(t, d, newID(), "x")
	p.kill()
	release(t, d, holder, "x")
	if o := behind.end(t); o.err != nil {
		t.Errorf("behind a waiter that was killed: %v", o.err)
	}
}

func TestFlockCommand_AndThisPackage_ExcludeEachOther(t *testing.T) {
	flockPath, err := exec.LookPath("flock")
	if err != nil {
		skip(t, "there is no flock(1)")
	}
	d := open(t, t.TempDir())
	path := d.path(mutex("nightly"))
	id := newID()
	mustTry(t, d, id, "nightly")
	if err := exec.Command(flockPath, "-n", path, "true").Run(); err == nil {
		t.Error("flock(1) got in beside a hold")
	}
	release(t, d, id, "nightly")

	c := exec.Command(flockPath, "-n", path, "sh", "-c", "echo in; read line")
	stdin, _ := c.StdinPipe()
	stdout, _ := c.StdoutPipe()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := stdout.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	_, err = try(d, newID(), "nightly")
	var held *driver.HeldError
	if !errors.As(err, &held) {
		t.Fatalf("try beside flock(1): %v", err)
	}
	if held.Owner != "" || held.Token != 0 {
		t.Errorf("flock(1)'s hold is shown as that of the last holder: %v", held)
	}
	w := startWaiting(t, d, newID(), "nightly")
	_ = stdin.Close()
	if o := w.end(t); o.err != nil {
		t.Error(o.err)
	}
	_ = c.Wait()
}

func TestFile_InAChildOfAKilledProcess_KeepsTheLock(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	linger, end, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer end.Close()
	p := startProcess(t, dir, linger)
	_ = linger.Close()
	token := p.token("lock 1 nightly")
	if got := p.ask("spawn nightly"); got != "ok" {
		t.Fatal(got)
	}
	p.kill()

	_, err = try(d, newID(), "nightly")
	var held *driver.HeldError
	if !errors.As(err, &held) || tellsHolders && held.Token != token {
		t.Errorf("try beside the living child: %v, want held with token %d", err, token)
	}
	if tellsHolders {
		got := list(t, d, "")
		if len(got) != 1 || got[0].Holders[0].Owner != "owner of 1" || got[0].Holders[0].Token != token {
			t.Errorf("listed: %+v", got)
		}
	}
	w := startWaiting(t, d, newID(), "nightly")
	_ = end.Close() // the child ends
	if o := w.end(t); o.err != nil {
		t.Error(o.err)
	}
}

func TestRelease_AfterFile_FreesTheLockAlthoughTheChildLives(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	linger, end, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer end.Close()
	p := startProcess(t, dir, linger)
	_ = linger.Close()
	p.token("lock 1 nightly")
	if got := p.ask("spawn nightly"); got != "ok" {
		t.Fatal(got)
	}
	if got := p.ask("release 1 nightly"); got != "ok" {
		t.Fatal(got)
	}
	id := newID()
	mustTry(t, d, id, "nightly")
	if tellsHolders {
		if got := list(t, d, ""); len(got) != 1 || got[0].Holders[0].Owner != "owner of "+id {
			t.Errorf("listed: %+v", got)
		}
	}
	release(t, d, id, "nightly")
	// The process locks again, with an open file of its own, so the child does not hold this lock too.
	p.token("lock 2 nightly")
	p.kill()
	if _, err := d.Acquire(context.Background(), request(newID(), "nightly")); err != nil {
		t.Error(err)
	}
}

func TestFile_OfALockThatIsNotHeld_IsRefused(t *testing.T) {
	d := open(t, t.TempDir())
	if _, err := d.File(mutex("x")); !errors.Is(err, driver.ErrNotHeld) || !strings.Contains(err.Error(), "x") {
		t.Errorf("got %v", err)
	}
}

// openFile opens the lock file of name, to look at its marks.
func openFile(t *testing.T, d *Driver, name string) *lockFile {
	t.Helper()
	f, err := openLockFile(d.path(mutex(name)), d.dir)
	if err != nil {
		t.Fatal(err)
	}
	f.key = mutex(name)
	t.Cleanup(f.close)
	return f
}

func list(t *testing.T, d *Driver, prefix string) []driver.LockInfo {
	t.Helper()
	var found []driver.LockInfo
	for info, err := range d.Locks(context.Background(), prefix) {
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, info)
	}
	return found
}

// The next holder of the same driver reads what the one before wrote. Under -race this test shows that the detector
// sees the order.
func TestAcquire_OfOneDriver_OrdersMemory(t *testing.T) {
	d := open(t, t.TempDir())
	var all sync.WaitGroup
	counter := 0
	for range 4 {
		all.Go(func() {
			for range 25 {
				id := newID()
				if _, err := d.Acquire(context.Background(), request(id, "x")); err != nil {
					t.Error(err)
					return
				}
				counter++
				if err := d.Release(context.Background(), &driver.Release{Key: mutex("x"), ID: id}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if counter != 100 {
		t.Errorf("counted %d", counter)
	}
}
