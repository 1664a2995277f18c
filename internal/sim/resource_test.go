package sim

import (
	"strconv"
	"sync"

	"github.com/interlock-go/interlock/fence"
)

// resource is what a lock protects: a counter that is read, and written with one more. It exists twice, with a fence
// and without. Both know their true history, so an update that is lost is noticed at once.
type resource struct {
	w    *world
	name string

	mu     sync.Mutex // guards what is below
	mark   fence.Stamp
	fenced int
	bare   int
}

// pass is the fence: it refuses who is older than the newest that has touched the resource, reads included.
func (r *resource) pass(s fence.Stamp) bool {
	if s.Token < r.mark.Token || s.Token == r.mark.Token && s.Nonce != r.mark.Nonce {
		r.w.counts.hit("refused by the fence")
		return false
	}
	r.mark = s
	return true
}

// read returns both counters. The fenced one is -1 if the fence refuses.
func (r *resource) read(s fence.Stamp) (fenced, bare int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fenced, bare = r.fenced, r.bare
	if r.w.conf.flaw != fencesWritesOnly && !r.pass(s) {
		fenced = -1
	}
	return fenced, bare
}

// write stores both counters. A fenced one of -1 is not written.
func (r *resource) write(s fence.Stamp, fenced, bare int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if fenced >= 0 && r.pass(s) {
		if fenced != r.fenced+1 {
			r.w.violate(fencing, "%s: %d was written over %d", r.name, fenced, r.fenced)
		}
		r.fenced = fenced
		r.w.counts.hit("fenced update")
		r.w.note("resource", r.name, "takes", strconv.Itoa(fenced))
	}
	if bare != r.bare+1 {
		r.w.counts.hit("unfenced update lost")
	}
	r.bare = bare
}
