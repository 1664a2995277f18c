package filelock

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// tryInside tries r and returns the refusal. What it gets it gives back.
func tryInside(t *testing.T, d *Driver, r *driver.Request) error {
	t.Helper()
	r.Try = true
	_, err := d.Acquire(context.Background(), r)
	if err == nil {
		leave(t, d, r)
	}
	return err
}

func leave(t *testing.T, d *Driver, r *driver.Request) {
	t.Helper()
	if err := d.Release(context.Background(), &driver.Release{Key: r.Key, ID: r.ID}); err != nil {
		t.Errorf("release: %v", err)
	}
}

// enter takes r, which must be free.
func enter(t *testing.T, d *Driver, r *driver.Request) driver.Grant {
	t.Helper()
	r.Try = true
	g, err := d.Acquire(context.Background(), r)
	if err != nil {
		t.Fatalf("try %+v: %v", r, err)
	}
	return g
}

// startInside starts an Acquire that has to wait, and returns when it stands first in the line.
func startInside(t *testing.T, d *Driver, r *driver.Request) *waitingAcquire {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	w := &waitingAcquire{cancel: cancel, result: make(chan outcome, 1)}
	go func() {
		g, err := d.Acquire(ctx, r)
		w.result <- outcome{g, err}
	}()
	awaitGate(t, d, r.Key)
	return w
}

// awaitGate returns when a request waits at the gate of key.
func awaitGate(t *testing.T, d *Driver, key driver.Key) {
	t.Helper()
	f, err := openLockFile(d.path(key), d.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	eventually(t, "somebody waits at the gate", func() bool {
		return marked(f.fd, waiting, 1) && marked(f.fd, turnstile, 1)
	})
}

func reader(id string) *driver.Request { return inside(id, driver.Shared, 0, 1, "x") }
func writer(id string) *driver.Request { return inside(id, driver.Exclusive, 0, 1, "x") }

func permits(id string, limit, n int) *driver.Request {
	return inside(id, driver.Shared, limit, n, "x")
}

func TestReaders_WhileAWriterWaits_DoNotGetAheadOfIt(t *testing.T) {
	dir := t.TempDir()
	a, b := open(t, dir), open(t, dir)
	first := reader(newID())
	enter(t, a, first)
	w := writer(newID())
	waits := startInside(t, b, w)
	for range 50 {
		if err := tryInside(t, a, reader(newID())); !errors.Is(err, driver.ErrHeld) {
			t.Fatalf("a reader got ahead of the writer: %v", err)
		}
	}
	late := make(chan error, 1)
	go func() {
		_, err := a.Acquire(context.Background(), reader("late"))
		late <- err
	}()
	leave(t, a, first)
	if o := waits.end(t); o.err != nil {
		t.Fatal(o.err)
	}
	select {
	case err := <-late:
		t.Fatalf("a reader is beside the writer: %v", err)
	default:
	}
	leave(t, b, w)
	if err := <-late; err != nil {
		t.Fatal(err)
	}
}

// Readers hold the lock without a pause: each leaves only when the next one is inside.
func TestWriter_AmongReadersWhoComeWithoutPause_GetsIn(t *testing.T) {
	dir := t.TempDir()
	a, b := open(t, dir), open(t, dir)
	var stop atomic.Bool
	done := make(chan struct{})
	first := reader(newID())
	enter(t, a, first)
	go func() {
		defer close(done)
		for last := first; ; {
			next := reader(newID())
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
			_, err := a.Acquire(ctx, next)
			cancel()
			if err != nil || stop.Load() { // the writer is in the way, so that nobody follows
				leave(t, a, last)
				if err == nil {
					leave(t, a, next)
				}
				return
			}
			leave(t, a, last)
			last = next
		}
	}()
	w := writer(newID())
	if _, err := b.Acquire(withTimeout(t, 10*time.Second), w); err != nil {
		t.Fatal(err)
	}
	stop.Store(true)
	<-done
	leave(t, b, w)
}

func TestHolders_ThatAreKilled_FreeAllThatTheyHad(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)

	p := startProcess(t, dir)
	p.token("enter 1 1 0 1 x") // reads
	w := writer(newID())
	waits := startInside(t, d, w)
	p.kill()
	if o := waits.end(t); o.err != nil {
		t.Fatalf("a writer after a killed reader: %v", o.err)
	}
	leave(t, d, w)

	p = startProcess(t, dir)
	p.token("enter 1 1 5 3 x")
	enter(t, d, permits("mine", 5, 2))
	if err := tryInside(t, d, permits(newID(), 5, 1)); !errors.Is(err, driver.ErrHeld) {
		t.Fatalf("a sixth permit of five: %v", err)
	}
	three := permits(newID(), 5, 3)
	waits = startInside(t, d, three)
	p.kill()
	if o := waits.end(t); o.err != nil {
		t.Fatalf("three permits after those of a killed process: %v", o.err)
	}
	leave(t, d, three)
	leave(t, d, permits("mine", 5, 2))
	enter(t, d, permits(newID(), 7, 7)) // nothing has kept the limit of five
}

func TestGate_OfAKilledProcess_IsOpen(t *testing.T) {
	dir := t.TempDir()
	d, p := open(t, dir), startProcess(t, dir)
	enter(t, d, reader("mine"))
	p.send("enter 1 0 0 1 x") // waits to write, and keeps the gate
	awaitGate(t, d, reader("").Key)
	if err := tryInside(t, d, reader(newID())); !errors.Is(err, driver.ErrHeld) {
		t.Fatalf("a reader got ahead of the writer: %v", err)
	}
	p.kill()
	if err := tryInside(t, d, reader(newID())); err != nil {
		t.Fatalf("a reader after the writer was killed: %v", err)
	}
}

func TestSemaphore_OfManyWithSeveralPermitsEach_NeverHasMoreThanItsLimitOut(t *testing.T) {
	const limit, goroutines, rounds = 5, 24, 8
	dir := t.TempDir()
	drivers := []*Driver{open(t, dir), open(t, dir), open(t, dir)}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var out atomic.Int32
	var tokens sync.Map
	var all sync.WaitGroup
	for g := range goroutines {
		random, d := rand.New(rand.NewPCG(seed, uint64(g))), drivers[g%len(drivers)]
		all.Go(func() {
			for range rounds {
				r := permits(newID(), limit, 1+random.IntN(limit))
				grant, err := d.Acquire(withTimeout(t, 60*time.Second), r)
				if err != nil {
					t.Error(err)
					return
				}
				if n := out.Add(int32(r.Weight)); n > limit {
					t.Errorf("%d permits of %d are out", n, limit)
				}
				if _, twice := tokens.LoadOrStore(grant.Token, true); twice {
					t.Errorf("token %d was granted twice", grant.Token)
				}
				out.Add(-int32(r.Weight))
				leave(t, d, r)
			}
		})
	}
	all.Wait()
	if n := len(slotMarksOf(t, drivers[0], permits("", limit, 1).Key)); n != 0 {
		t.Errorf("%d slots are taken in the end", n)
	}
}

func slotMarksOf(t *testing.T, d *Driver, key driver.Key) []slotMark {
	t.Helper()
	f, err := openLockFile(d.path(key), d.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	marks, err := slotMarks(f.fd)
	if err != nil {
		t.Fatal(err)
	}
	return marks
}

// A Try is refused because of holders and of requests that wait. It is not refused because of requests that are just on
// their way in.
func TestTry_BesideOthersOnTheirWayIn_IsGranted(t *testing.T) {
	const goroutines, rounds = 8, 50
	dir := t.TempDir()
	var all sync.WaitGroup
	for range goroutines {
		d := open(t, dir)
		d.pace.gate = time.Minute // nobody is kept from the processor for that long
		all.Go(func() {
			for range rounds {
				if err := tryInside(t, d, reader(newID())); err != nil {
					t.Errorf("a reader among readers: %v", err)
				}
			}
		})
	}
	all.Wait()
}

func TestLockFile_OfReadersAndPermits_KeepsFlockOut(t *testing.T) {
	d := open(t, t.TempDir())
	for _, r := range []*driver.Request{reader(newID()), permits(newID(), 3, 1)} {
		enter(t, d, r)
		f, err := os.Open(d.path(r.Key))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != syscall.EWOULDBLOCK {
			t.Errorf("%s: who removes the file under its lock could: %v", r.Kind, err)
		}
		if err := flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); err != nil {
			t.Errorf("%s: another reader could not: %v", r.Kind, err)
		}
		if r.Kind == driver.KindRWMutex {
			if err := tryInside(t, d, writer(newID())); !errors.Is(err, driver.ErrHeld) {
				t.Errorf("a writer beside readers: %v", err)
			}
		}
	}
}

func TestLook_AtLocksWithSeveralHolders_ShowsEachWithItsWeight(t *testing.T) {
	dir := t.TempDir()
	d, p := open(t, dir), startProcess(t, dir)
	one, two := permits(newID(), 9, 4), permits(newID(), 9, 1)
	g := enter(t, d, one)
	enter(t, d, two)
	p.token("enter 1 1 9 2 x")
	leave(t, d, two)
	info, err := d.Look(context.Background(), one.Key)
	if err != nil || info.Limit != 9 || len(info.Holders) != 2 {
		t.Fatalf("got %+v, %v", info, err)
	}
	first, other := info.Holders[0], info.Holders[1]
	if first.Owner != one.Owner || first.Token != g.Token || first.Weight != 4 || !first.Shared ||
		first.Since.IsZero() {
		t.Errorf("got %+v", first)
	}
	if other.Owner != "owner of 1" || other.Weight != 2 || other.Token <= g.Token {
		t.Errorf("got %+v", other)
	}
	enter(t, d, writer(newID()))
	info, err = d.Look(context.Background(), writer("").Key)
	if err != nil || len(info.Holders) != 1 || info.Holders[0].Shared || info.Limit != 0 {
		t.Errorf("got %+v, %v", info, err)
	}
}

func TestAcquire_WhileAnotherIsAtTheGate_WaitsUntilThatIsThrough(t *testing.T) {
	d := open(t, t.TempDir())
	f, err := openLockFile(d.path(reader("").Key), d.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	if err := f.enterGate(); err != nil {
		t.Fatal(err)
	}
	if err := tryInside(t, d, reader(newID())); !errors.Is(err, driver.ErrHeld) {
		t.Fatalf("a Try got through the gate beside another: %v", err)
	}
	r := reader(newID())
	waits := startInside(t, d, r)
	f.leaveLine()
	if o := waits.end(t); o.err != nil {
		t.Fatal(o.err)
	}
	leave(t, d, r)
	f.joinLine() // has been woken, and is not at the gate yet
	if err := tryInside(t, d, reader(newID())); !errors.Is(err, driver.ErrHeld) {
		t.Fatalf("a Try got ahead of one that waits: %v", err)
	}
}

func TestSemaphore_ThatNobodyCouldHave_IsRefusedForGood(t *testing.T) {
	d := open(t, t.TempDir())
	tooMany := int64(maxLimit) + 1 // negative where an int has 32 bits
	for _, r := range []*driver.Request{
		permits(newID(), 3, 4), permits(newID(), 3, 0), permits(newID(), int(tooMany), 1),
		inside(newID(), driver.Exclusive, 3, 1, "x"), inside(newID(), driver.Upgradeable, 0, 1, "x"),
	} {
		if err := tryInside(t, d, r); err == nil || !driver.IsDefinite(err) || errors.Is(err, driver.ErrHeld) {
			t.Errorf("%+v: %v", r, err)
		}
	}
	enter(t, d, permits(newID(), maxLimit, maxLimit))
}

// The kernel shows the marks of a range in any order, so each has to be found between others.
func TestSlots_TakenInAnyOrder_AreAllFound(t *testing.T) {
	d := open(t, t.TempDir())
	key := permits("", 1, 1).Key
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	var want []slotMark
	for _, n := range random.Perm(40) {
		f, err := openLockFile(d.path(key), d.dir)
		if err != nil {
			t.Fatal(err)
		}
		defer f.close()
		f.slot = 1 + 3*n + random.IntN(3)
		r := permits("", maxLimit, 1+random.IntN(maxLimit))
		if err := f.markSlot(r); err != nil {
			t.Fatal(err)
		}
		want = append(want, slotMark{f.slot, r.Weight, false})
	}
	got, bySlot := slotMarksOf(t, d, key), func(a, b slotMark) int { return a.slot - b.slot }
	slices.SortFunc(want, bySlot)
	if slices.SortFunc(got, bySlot); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
