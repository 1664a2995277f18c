// The leases of all clients of this server. acquire.go reserves a place and fills it, lease.go and events.go find a
// lease by its id, and Close of server.go empties the table.

package lockapi

import (
	"net/http"
	"sync"
	"time"

	"github.com/interlock-go/interlock"
)

// keepEnded is how long an ended lease is remembered, so that its client hears how it ended.
const keepEnded = time.Minute

// held is a lease that a client has taken. Its fields do not change.
type held struct {
	id    string
	by    string // the name of the token that took it
	lease *interlock.Lease
	ttl   time.Duration // asked for at the start: the default of renewals

	// Each function closes its channel, once. They are here because the library tells neither of a release nor that
	// another client of this server waits: to it, all clients are one process.
	released, wanted func()
	releasedC        <-chan struct{}
	wantedC          <-chan struct{}
}

func newHeld(id, by string, lease *interlock.Lease, ttl time.Duration) *held {
	h := &held{id: id, by: by, lease: lease, ttl: ttl}
	h.released, h.releasedC = signal()
	h.wanted, h.wantedC = signal()
	return h
}

// signal returns a channel, and a function that closes it and may be called again.
func signal() (func(), <-chan struct{}) {
	c := make(chan struct{})
	return sync.OnceFunc(func() { close(c) }), c
}

// table has the leases of all clients, and counts those that are being acquired.
type table struct {
	mu      sync.Mutex       // guards what follows
	leases  map[string]*held // by id; ended ones too, for keepEnded
	latest  map[string]*held // the last one of each lock, by the lock's name
	waiters map[string]int   // clients of this server that wait, by the lock's name
	pending map[string]bool  // places reserved by acquisitions, by the lease's id
	most    int              // leases and pending together
	swept   time.Time        // when sweep last looked
	closed  bool             // for good
}

func newTable(most int) *table {
	return &table{
		leases: map[string]*held{}, latest: map[string]*held{}, waiters: map[string]int{}, pending: map[string]bool{},
		most: most,
	}
}

// reserve keeps a place free for a lease, and begins an acquisition, for which Close waits: the caller calls
// active.Done. Or it returns the lease, if the same client has taken it already by a request that it repeats. The
// library is told of dropped leases after the mutex is free, because that may call its code.
func (t *table) reserve(active *sync.WaitGroup, id, name string, by string) (taken *held, err error) {
	t.mu.Lock()
	taken, ended, err := t.judge(id, name, by)
	if err == nil && taken == nil {
		t.pending[id] = true
		active.Add(1)
	}
	t.mu.Unlock()
	for _, h := range ended {
		forget(h)
	}
	return taken, err
}

// judge says whether a request may take its lease. It also returns the leases that it has dropped. mu is held.
func (t *table) judge(id, name string, by string) (taken *held, ended []*held, err error) {
	if t.closed {
		return nil, nil, errEnding()
	}
	// An ID names one lease for ever, so the same one with another name or token is refused.
	taken = t.leases[id]
	switch {
	case t.pending[id]:
		return nil, nil, problemf(http.StatusConflict, "id", "a request with this id is under way still; ask again")
	case taken != nil && (taken.by != by || taken.lease.Name() != name || taken.lease.Err() != nil):
		return nil, nil, problemf(http.StatusConflict, "id", "another lease has or had this id; choose a new one")
	case taken != nil:
		return taken, nil, nil
	}
	ended = t.sweep()
	if len(t.leases)+len(t.pending) >= t.most {
		err = problemf(http.StatusServiceUnavailable, "full", "this server holds as many leases as it may")
	}
	return nil, ended, err
}

// sweep drops leases that ended a while ago, at most once a second, because it looks at all; when there is no room, it
// drops all that have ended. mu is held.
func (t *table) sweep() (ended []*held) {
	now := time.Now()
	full := len(t.leases)+len(t.pending) >= t.most
	if !full && now.Sub(t.swept) < time.Second {
		return nil
	}
	t.swept = now
	for id, h := range t.leases {
		if h.lease.Err() != nil && (full || now.Sub(h.lease.Deadline()) > keepEnded) {
			delete(t.leases, id)
			if name := h.lease.Name(); t.latest[name] == h {
				delete(t.latest, name)
			}
			ended = append(ended, h)
		}
	}
	return ended
}

// cancel gives back the place of an acquisition that failed.
func (t *table) cancel(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.pending, id)
}

// put puts a lease into its reserved place, or reports false when the server is ending. If somebody waits already, the
// new holder is told at once.
func (t *table) put(h *held) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.pending, h.id)
	if t.closed {
		return false
	}
	name := h.lease.Name()
	t.leases[h.id], t.latest[name] = h, h
	if t.waiters[name] > 0 {
		h.wanted()
	}
	return true
}

// wait tells the holder of a lock, if it is a client of this server, that another one waits. done ends the wait.
func (t *table) wait(name string) (done func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiters[name]++
	if h := t.latest[name]; h != nil {
		h.wanted()
	}
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.waiters[name]--; t.waiters[name] == 0 {
			delete(t.waiters, name)
		}
	}
}

// get finds a lease of the token's. An id of another token's is like one that is not there, so that nobody can find out
// which exist.
func (t *table) get(id string, by string) (*held, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch h := t.leases[id]; {
	case t.closed:
		return nil, errEnding()
	case h == nil || h.by != by:
		return nil, problemf(http.StatusNotFound, "lease", "it was never taken here, or it ended a while ago")
	default:
		return h, nil
	}
}

// close returns all leases and accepts no more.
func (t *table) close() []*held {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	var all []*held
	for _, h := range t.leases {
		all = append(all, h)
	}
	clear(t.leases)
	clear(t.latest)
	return all
}

// errEnding is the problem of a request to a server that closes.
func errEnding() error {
	const detail = "leases stay held until their deadlines; take new ones elsewhere"
	return problemf(http.StatusServiceUnavailable, "ending", detail)
}
