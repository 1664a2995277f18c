//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package filelock

import (
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// lookAgain is after how long a waiter looks for a holder that is not of this package. Most waits are over by then, and
// finding such a holder means reading a list of all locks of the machine, which takes longer than a hand-over.
const lookAgain = 20 * time.Millisecond

// news tells a request's Waiting who holds the lock.
type news struct {
	d     *Driver
	r     *driver.Request
	f     *lockFile
	timer *time.Timer

	mu   sync.Mutex // guards told and over; held while f is used, so that f is not closed meanwhile
	told *driver.HeldError
	over bool
}

// newNews returns news of f for r, with a later look already arranged. The caller must stop it before it closes f.
func (d *Driver) newNews(r *driver.Request, f *lockFile) *news {
	n := &news{d: d, r: r, f: f}
	if r.Waiting != nil {
		n.timer = time.AfterFunc(lookAgain, func() { n.look(d.heldError) })
	}
	return n
}

// tell tells the holder if it is of this package. In the moments of a hand-over nobody is known.
func (n *news) tell() {
	if n.r.Waiting != nil {
		n.look(n.d.ourHolder)
	}
}

func (n *news) look(who func(*lockFile, driver.Key) *driver.HeldError) {
	n.mu.Lock()
	if n.over {
		n.mu.Unlock()
		return
	}
	h := who(n.f, n.r.Key)
	same := n.told != nil && *h == *n.told
	n.told = h
	n.mu.Unlock()
	if !same {
		n.r.Waiting(h)
	}
}

func (n *news) stop() {
	if n.timer == nil {
		return
	}
	n.timer.Stop()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.over = true
}
