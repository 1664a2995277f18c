//go:build linux

package filelock

import (
	"context"
	"errors"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// byHand takes the flock of a lock as a program without this package does: without record and marks.
func byHand(t *testing.T, d *Driver, name string) {
	t.Helper()
	mustTry(t, d, newID(), name) // makes the file
	for id := range d.attempts {
		release(t, d, id, name)
	}
	f, err := os.OpenFile(d.path(mutex(name)), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
}

// listedAs makes d take list for the list of all flocks of the machine.
func listedAs(d *Driver, list func() flockers) { d.foreign.list = list }

// listOf returns a list in which process pid has the flock of the lock's file.
func listOf(t *testing.T, d *Driver, name string, pid int) flockers {
	t.Helper()
	f, err := d.open(mutex(name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	return flockers{listed(f.id): pid}
}

func refusedBy(t *testing.T, d *Driver, r *driver.Request) string {
	t.Helper()
	r.Try = true
	_, err := d.Acquire(t.Context(), r)
	var held *driver.HeldError
	if !errors.As(err, &held) {
		t.Fatalf("got %v", err)
	}
	return held.Client
}

func TestTry_ThatAWaitFollows_LooksForNobody(t *testing.T) {
	d := open(t, t.TempDir())
	byHand(t, d, "x")
	reads := 0
	listedAs(d, func() flockers { reads++; return nil })
	r := request(newID(), "x")
	r.SkipHolder = true
	if client := refusedBy(t, d, r); client != "" || reads != 0 {
		t.Errorf("held by %q, after %d looks at all locks of the machine", client, reads)
	}
}

func TestTry_AtALockOfAnotherProgram_NamesIt_AndReadsTheListOnceForAll(t *testing.T) {
	d := open(t, t.TempDir())
	byHand(t, d, "x")
	list, reads := listOf(t, d, "x", 7), 0
	listedAs(d, func() flockers { reads++; return list })
	begun := time.Now()
	for range 100 {
		if client := refusedBy(t, d, request(newID(), "x")); client != "process 7" {
			t.Fatalf("held by %q", client)
		}
	}
	if reads != 1 && time.Since(begun) < foreignFor {
		t.Errorf("the list was read %d times", reads)
	}
	d.foreign.last.Store(&listing{all: list, at: time.Now().Add(-foreignFor)})
	list = nil
	if client := refusedBy(t, d, request(newID(), "x")); client != "" {
		t.Errorf("held by %q, which it was a while ago", client)
	}
}

// Reading the list may take long. No wait may last longer because of it.
func TestAcquire_WhileTheListOfLocksIsRead_EndsWithItsContext(t *testing.T) {
	d := open(t, t.TempDir())
	byHand(t, d, "x")
	reading, goOn := make(chan struct{}), make(chan struct{})
	listedAs(d, func() flockers { close(reading); <-goOn; return nil })
	defer close(goOn)
	w := startWaiting(t, d, newID(), "x")
	<-reading
	w.cancel()
	if o := w.end(t); !errors.Is(o.err, context.Canceled) {
		t.Errorf("got %+v", o)
	}
	if client := refusedBy(t, d, request(newID(), "x")); client != "" {
		t.Errorf("held by %q, while another looks", client)
	}
}

// Another program that holds the lock is named once the list is read again.
func TestAcquire_BehindAnotherProgram_IsToldItsNameAtLast(t *testing.T) {
	d := open(t, t.TempDir())
	byHand(t, d, "x")
	lists := []flockers{nil, listOf(t, d, "x", 7)}
	listedAs(d, func() (l flockers) {
		l, lists = lists[0], lists[len(lists)-1:]
		return l
	})
	ctx, cancel := context.WithCancel(t.Context())
	r := request(newID(), "x")
	told := make(chan string, 16)
	r.Waiting = func(h *driver.HeldError) { told <- h.Client }
	ended := make(chan error, 1)
	go func() { _, err := d.Acquire(ctx, r); ended <- err }()
	timeout := time.After(20 * time.Second)
	for client := ""; client != "process 7"; {
		select {
		case client = <-told:
		case err := <-ended:
			t.Fatal(err)
		case <-timeout:
			t.Fatal("nobody is named")
		}
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// If a holder of this package came while the list was read, the waiter is told of that one, and not of the one in the
// list.
func TestNews_WhileTheListIsRead_ALaterHolderIsTold(t *testing.T) {
	d := open(t, t.TempDir())
	byHand(t, d, "x")
	f, err := d.open(mutex("x"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	later, err := d.open(mutex("x"))
	if err != nil {
		t.Fatal(err)
	}
	defer later.close()
	list := listOf(t, d, "x", 7)
	listedAs(d, func() flockers { // meanwhile one of this package takes the lock
		later.markHeld()
		return list
	})
	var told []string
	n := &news{d: d, key: mutex("x"), f: f, waiting: func(h *driver.HeldError) { told = append(told, h.Client) }}
	n.lookFurther()
	n.stop()
	r, err := stableRecord(f.fd, 0)
	if err != nil || r.Client == "" || !slices.Equal(told, []string{r.Client}) {
		t.Errorf("told %q; the record is of %q, %v", told, r.Client, err)
	}
	if held := d.heldError(f, mutex("x")); held.Client != r.Client {
		t.Errorf("held by %q", held.Client)
	}
}
