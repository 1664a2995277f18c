// All watches of a driver on one stream of our own (docs/rationale.md, etcd: streams and signs of life). wait.go and
// notices.go ask for watches; watch.go has what is kept of each, and stream.go runs the stream.
//
// The server answers requests for watches in the order in which they were sent on a stream, which asked relies on.
// Nobody waits for the network under mu, so a server that does not read cannot block a Lock or an Unlock.

package etcdlock

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/enginekit"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// listener has all watches of a driver on one stream. The client library's own watcher would do, but it notices a
// silent server only after its keepalive time, which cannot be less than ten seconds; and hints do not need a goroutine
// for each watch. While the stream is down nothing is lost: on the next one every watch begins anew, and its owner is
// told at which revision, and reads.
type listener struct {
	remote pb.WatchClient
	pulse  time.Duration // between two requests for a sign of life while somebody waits

	wakes atomic.Int64 // how many hints about changes there were; for tests

	mu      sync.Mutex         // guards what follows; nothing blocks under it
	last    int64              // the ID of the latest watch
	watches map[int64]*watch   // by ID
	outbox  []*pb.WatchRequest // requests that the writer has not taken
	// asked are the watches that must still be begun on this stream, in the order in which the server answers.
	asked []int64
	post  chan struct{} // buffer of one: something is in the outbox
	// open: there is a stream. Before that, requests need not be written, because each stream begins with all watches.
	open   bool
	silent int // requests for a sign of life since the last message
	mute   int // streams in a row on which nothing has come
}

const (
	// silences is how many signs of life may be missing before a stream is dropped.
	silences = 3

	// idlePulses: while nobody waits for a lock, only each such pulse asks for a sign of life.
	idlePulses = 5
)

// firstPause and longestPause bound the pauses between attempts: of streams, of requests, and of connections.
const (
	firstPause   = 50 * time.Millisecond
	longestPause = time.Second
)

// newListener returns a listener without a stream. run keeps one.
func newListener(remote pb.WatchClient, pulse time.Duration) *listener {
	return &listener{remote: remote, pulse: pulse, watches: make(map[int64]*watch), post: make(chan struct{}, 1)}
}

// watch begins to watch. It does not block; the hint comes when the server has begun, and after each change. The
// question goes to the outbox, so the caller must not rely on the server's watching before the first hint.
func (e *listener) watch(o *queueView) *watch {
	w := newWatch(o)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.last++
	w.id = e.last
	e.watches[w.id] = w
	e.send(w.request())
	return w
}

// unwatch ends a watch.
func (e *listener) unwatch(w *watch) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, known := e.watches[w.id]; known {
		// It is deleted at once: what the server still says about it finds nobody and is dropped.
		delete(e.watches, w.id)
		e.send(w.cancelRequest())
	}
}

// send has a request written, if there is a stream. The caller holds mu.
func (e *listener) send(r *pb.WatchRequest) {
	if !e.open {
		return
	}
	e.outbox = append(e.outbox, r)
	if create := r.GetCreateRequest(); create != nil {
		e.asked = append(e.asked, create.WatchId)
	}
	select {
	case e.post <- struct{}{}:
	default: // the writer has been told already
	}
}

// news returns what is new about w, and forgets it: the revision at which the server began to watch, and the one of the
// latest change; 0 if that is not new.
func (e *listener) news(w *watch) (created, changed int64, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	created, changed, err = w.created, w.changed, w.err
	w.created, w.changed = 0, 0
	return created, changed, err
}

// happened is news for a watch that keeps its events: it returns those since the last time.
func (e *listener) happened(w *watch) (created int64, events []*clientv3.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	created, events = w.created, w.events
	w.created, w.changed, w.events = 0, 0, nil
	return created, events
}

// run keeps a stream open until ctx ends. start runs it in a goroutine. The pause grows while streams end at once, as
// they do while no server can be reached, and is short again after one that lasted.
func (e *listener) run(ctx context.Context) {
	pause := firstPause
	for ctx.Err() == nil {
		begun := time.Now()
		_ = e.listen(ctx) // why it has ended does not matter
		if time.Since(begun) > longestPause {
			pause = firstPause
		}
		enginekit.Pause(ctx, pause)
		pause = min(2*pause, longestPause)
	}
}

// received handles one message, and reports whether another stream is needed.
func (e *listener) received(r *pb.WatchResponse) (another bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	// Any message shows that the server lives, not only the answer to a sign of life.
	e.silent, e.mute = 0, 0
	w := e.watches[e.idOf(r)]
	if w == nil {
		return false // it was given up meanwhile, or this is a sign of life
	}
	if len(r.Events) > 0 {
		e.wakes.Add(1)
	}
	w.received(r)
	if r.Canceled && r.CompactRevision != 0 { // it lagged behind until its history was gone
		e.send(w.request())
	}
	return refusesWatch(r) && w.err == nil
}

// idOf returns the watch that a message is about. The message of a watch that is refused has no ID, so the order of the
// questions tells. The caller holds mu.
func (e *listener) idOf(r *pb.WatchResponse) int64 {
	if !r.Created || len(e.asked) == 0 {
		return r.WatchId
	}
	at := max(0, slices.Index(e.asked, r.WatchId))
	id := e.asked[at]
	e.asked = slices.Delete(e.asked, at, at+1)
	return id
}
