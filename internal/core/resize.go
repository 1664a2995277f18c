package core

import (
	"context"
	"sync"
)

// Resizes says which requests of a Semaphore may have crossed one of its own changes of the limit: the engine has the
// new one before or after s asks with it, and refuses what comes in between as a conflict.
type Resizes struct {
	Limit func() int // with which the semaphore asks now

	mu       sync.Mutex    // guards what follows; nothing is waited for under it
	underWay int           // how many calls of Resize are
	turns    int           // how many have begun or ended
	idle     chan struct{} // closed when none is under way; nil before the first
}

func (r *Resizes) Begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turns++
	if r.underWay++; r.underWay == 1 {
		r.idle = make(chan struct{})
	}
}

func (r *Resizes) End() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turns++
	if r.underWay--; r.underWay == 0 {
		close(r.idle)
	}
}

// Seen is what crossed compares with, before a request is sent.
func (r *Resizes) Seen() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.turns
}

// Crossed reports whether a Resize was under way since then. It waits for those that are still, or for ctx.
func (r *Resizes) Crossed(ctx context.Context, since int) bool {
	r.mu.Lock()
	idle, underWay := r.idle, r.underWay > 0
	r.mu.Unlock()
	if underWay {
		select {
		case <-idle:
		case <-ctx.Done():
			return false
		}
	}
	return r.Seen() != since || underWay
}
