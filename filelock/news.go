//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd || windows

package filelock

import (
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// What a waiter is told of the holder (Request.Waiting), at once and later again. It has no part in getting the lock.

const (
	// A waiter looks for a holder that is not of this package after lookAgain. Most waits are over by then. Finding
	// such a holder means reading a list of all locks of the machine, which takes longer than a hand-over. While the
	// holder is not known to be of this package it looks again, in pauses that grow from foreignFor to lookSeldom.
	lookAgain  = 20 * time.Millisecond
	lookSeldom = time.Minute
)

// news tells a request's Waiting who holds the lock.
type news struct {
	d       *Driver
	key     driver.Key
	waiting func(*driver.HeldError)
	f       *lockFile

	// Guards what follows. It is held while f is used, except for its id, so that f is not closed meanwhile.
	mu    sync.Mutex
	timer *time.Timer
	pause time.Duration     // before the last look
	told  *driver.HeldError // what Waiting was last called with
	over  bool              // the wait is over, or nobody wants to know
}

// newNews returns news of f for r, with a first look already scheduled. The caller must stop it before it closes f.
func (d *Driver) newNews(r *driver.Request, f *lockFile) *news {
	n := &news{d: d, key: r.Key, waiting: r.Waiting, f: f, over: r.Waiting == nil}
	n.lookIn(lookAgain)
	return n
}

// lookIn schedules a further look, by a timer and not by a goroutine.
func (n *news) lookIn(pause time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.over {
		n.pause = pause
		n.timer = time.AfterFunc(pause, n.lookFurther)
	}
}

// tell tells the holder if it is of this package. During a hand-over nobody is known.
func (n *news) tell() { n.say("") }

// lookFurther also finds a holder that is not of this package. That may take long, and the wait can end meanwhile.
func (n *news) lookFurther() {
	foreign, more := "", n.isForeign()
	if more {
		foreign = n.d.foreign.client(n.f.id)
	}
	n.say(foreign)
	if more {
		n.lookIn(min(max(2*n.pause, foreignFor), lookSeldom))
	}
}

// isForeign reports whether the holder may be one that is not of this package.
func (n *news) isForeign() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return !n.over && !isHeld(n.f.fd)
}

// say tells who holds the lock now, unless that has been told or the wait is over. foreign is the holder if nobody of
// this package is. Waiting is called without mu, because it is the caller's.
func (n *news) say(foreign string) {
	n.mu.Lock()
	if n.over {
		n.mu.Unlock()
		return
	}
	h, ours := ourHolder(n.f, n.key)
	if !ours {
		h.Client = foreign
	}
	said := n.told != nil && *h == *n.told
	n.told = h
	n.mu.Unlock()
	if !said {
		n.waiting(h)
	}
}

// stop ends the news. A look that is under way tells nothing more.
func (n *news) stop() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.over = true
	if n.timer != nil {
		n.timer.Stop()
	}
}
