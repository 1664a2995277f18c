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
	d       *Driver
	key     driver.Key
	waiting func(*driver.HeldError) // nil if nobody wants to know
	f       *lockFile

	mu    sync.Mutex // guards what follows; held while f is used, so that f is not closed meanwhile
	timer *time.Timer
	told  *driver.HeldError
	over  bool
}

// newNews returns news of f for r, with a later look already arranged. The caller must stop it before it closes f.
func (d *Driver) newNews(r *driver.Request, f *lockFile) *news {
	n := &news{d: d, key: r.Key, waiting: r.Waiting, f: f}
	if n.waiting != nil {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.timer = time.AfterFunc(lookAgain, n.lookFurther)
	}
	return n
}

// tell tells the holder if it is of this package. In the moments of a hand-over nobody is known.
func (n *news) tell() {
	if n.waiting == nil {
		return
	}
	if h, _, ok := n.look(); ok {
		n.say(h)
	}
}

// look returns the holder, and whether it is of this package; not ok if the wait is over.
func (n *news) look() (h *driver.HeldError, ours, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.over {
		return nil, false, false
	}
	h, ours = ourHolder(n.f, n.key)
	return h, ours, true
}

// lookFurther also finds a holder that is not of this package. While it does, which may take long, the wait can end.
func (n *news) lookFurther() {
	h, ours, ok := n.look()
	if !ok {
		return
	}
	if !ours {
		h.Client = n.d.foreign.client(n.f.id)
	}
	n.say(h)
	if !ours && h.Client == "" { // it has come since the list was read, or there was none in that moment
		n.again()
	}
}

func (n *news) again() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.over {
		n.timer.Reset(foreignFor)
	}
}

// say tells h unless that has been told, or the wait is over.
func (n *news) say(h *driver.HeldError) {
	n.mu.Lock()
	same := n.told != nil && *h == *n.told
	over := n.over
	n.told = h
	n.mu.Unlock()
	if !same && !over {
		n.waiting(h)
	}
}

func (n *news) stop() {
	if n.waiting == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.timer.Stop()
	n.over = true
}
