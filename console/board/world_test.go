package board

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/drivertest/faulty"
	"github.com/interlock-go/interlock/memlock"
)

// world is an engine in virtual time, whose list can fail, and a poller of it.
type world struct {
	*testing.T
	driver driver.Driver
	client *interlock.Client
	faults *faulty.Control
	poller *Poller
}

// inWorld runs f in a bubble, in which time stands still while anybody works.
func inWorld(t *testing.T, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d, faults := faulty.Wrap(memlock.New(nil), 1)
		defer d.Close()
		c, err := interlock.New(d, &interlock.Options{ClientName: "here"})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		p := NewPoller(c, &Options{URL: "mem://test", Timeout: 3 * time.Second})
		defer p.Close()
		f(&world{t, d, c, faults, p})
	})
}

func (w *world) lock(name string) *interlock.Lease {
	w.Helper()
	l, err := w.client.Lock(w.Context(), name)
	if err != nil {
		w.Fatal(err)
	}
	return l
}

func (w *world) unlock(l *interlock.Lease) {
	w.Helper()
	if err := l.Unlock(w.Context()); err != nil {
		w.Fatal(err)
	}
}

// next waits for the reader's next update.
func (w *world) next(r *Reader) Update {
	w.Helper()
	select {
	case <-r.Changed():
	case <-time.After(time.Minute):
		w.Fatal("no update for a minute")
	}
	u, ok := r.Next()
	if !ok {
		w.Fatal("the reader was woken for nothing")
	}
	return u
}

// words are events in short, oldest first.
func words(events []Event) string {
	var all []string
	for i := len(events) - 1; i >= 0; i-- {
		e := events[i]
		word := string(e.Event) + " " + e.Name
		if e.Owner != "" {
			word += " " + e.Owner
		}
		if e.Why != "" {
			word += " (" + e.Why + ")"
		}
		all = append(all, word)
	}
	return strings.Join(all, "; ")
}

func mutexHeld(name string, holders ...Holder) Lock {
	return Lock{
		ID: ID(driver.KindMutex, name), Kind: driver.KindMutex, Name: name, Holders: holders, Waiters: []Waiter{},
	}
}
