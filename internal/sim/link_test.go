package sim

import (
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

const (
	// heartbeat is the pause between two copies of a request that waits. Odd numbers here and below, so that they
	// coincide with no limit of the core's.
	heartbeat = 331 * time.Millisecond
	// impatient and patient is how long a driver waits for any answer before it gives up: less than any lease, or more
	// than most. Every life of a process has the one or the other.
	impatient = 787 * time.Millisecond
	patient   = 4337 * time.Millisecond
	// waiterLife is how long the engine keeps a waiter whose heartbeats stay out.
	waiterLife = 1103 * time.Millisecond
)

// errNoAnswer is what a driver says when it has given up: the outcome is unknown.
var errNoAnswer = errors.New("no answer")

// link is a process's access to the engine over the network: the driver under test conditions. One link belongs to one
// life of a process; the next life has a new one.
type link struct {
	w        *world
	name     string          // of the process and its life, such as "p2.1"
	peer     *memlock.Driver // what the engine has of it
	patience time.Duration

	mu     sync.Mutex // guards what is below
	tries  map[string]int
	dead   bool      // the process has crashed: nothing leaves it and nothing reaches it
	frozen time.Time // until then it stands still
	cutOut time.Time // until then its requests are lost
	cutIn  time.Time // until then the replies to it are lost
	newest time.Time // when the newest of its requests that has arrived was sent
}

var (
	_ driver.Driver    = (*link)(nil)
	_ driver.Renewer   = (*link)(nil)
	_ driver.Requeuer  = (*link)(nil)
	_ driver.Inspector = (*link)(nil)
	_ driver.Breaker   = (*link)(nil)
)

func (w *world) newLink(name string) *link {
	l := &link{w: w, name: name, peer: w.engine.admin.Peer(), patience: impatient, tries: make(map[string]int)}
	if w.conf.faults && w.random("link "+name).IntN(3) == 0 {
		l.patience = patient
	}
	return l
}

// Traits are the memory engine's, except that it is far away.
func (l *link) Traits() driver.Traits {
	t := l.peer.Traits()
	t.Local = false
	return t
}

// Close ends the waits that the engine has of the process.
func (l *link) Close() error { return l.peer.Close() }

// label names a request without the part that is random in every run.
func (l *link) label(id string) string {
	if _, number, ok := strings.Cut(id, "."); ok {
		return l.name + "/" + number
	}
	return l.name + "/" + id
}

// state tells whether the process is dead, how long it still stands still, and whether a cut of it is in force.
func (l *link) state(cut *time.Time) (dead bool, frozen time.Duration, isCut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dead, max(0, time.Until(l.frozen)), cut != nil && time.Until(*cut) > 0
}

// until makes a fault of the link last for d.
func (l *link) until(fault *time.Time, d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	*fault = time.Now().Add(d)
}

// kill is the crash of the process.
func (l *link) kill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead = true
}

// arrived counts messages that overtook an earlier one.
func (l *link) arrived(m *message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m.sent.Before(l.newest) {
		l.w.counts.hit("reordered request")
		return
	}
	l.newest = m.sent
}
