// All watches of a driver on one stream of our own (docs/rationale.md, etcd: streams and signs of life). wait.go and
// notices.go ask for watches.
//
// The server answers requests for watches in the order in which they were sent on a stream, which asked relies on.
// Nobody waits for the network under mu, so a server that does not read cannot block a Lock or an Unlock.

package etcdlock

import (
	"context"
	"errors"
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

// One watch: what it is about and what is new.
//
// A hint may be late, doubled, or about a change that means nothing, and it may stand for several changes. None of that
// matters, because its owner reads what is so. What must not happen is a change without a hint: so the hint comes after
// the fields are set, under the same mutex, and a hint that is already waiting covers what was added to it.

// watch is an interest in a key or a prefix. It gives hints and no events: whoever gets one reads what is so.
type watch struct {
	hint chan struct{} // buffer of one: something below is new
	id   int64
	key  string
	end  string // of the range; empty for a single key
	puts bool   // also hint when a key is written, not only when it ends
	keep bool   // keep the events for the owner of the watch

	// listener.mu guards these.
	created int64 // the server's revision when it began to watch; 0 if it has not, or that is not new
	begun   bool  // the server has begun at least once
	changed int64 // the revision of the latest change; 0 if that is not new
	// Only the session's own watch keeps them, so a queue with many changes costs no memory in its waiters.
	events  []*clientv3.Event
	refused bool  // the server refused once, and is asked again
	err     error // why the server does not watch
}

// newWatch returns a watch for what o asks for.
func newWatch(o *queueView) *watch {
	w := &watch{hint: make(chan struct{}, 1), key: o.watch, puts: o.puts, keep: o.keep}
	if o.wide {
		w.end = clientv3.GetPrefixRangeEnd(o.watch)
	}
	return w
}

// tell hints that something is new. It does not block. The caller holds listener.mu.
func (w *watch) tell() {
	select {
	case w.hint <- struct{}{}:
	default: // it has been told already and will see this too
	}
}

// request makes the server watch from its present revision on. A watch from an older revision is served by a loop that
// comes around ten times a second (etcd's "unsynced watchers"). That is why etcd's concurrency.Mutex takes 70 to 100 ms
// to pass a lock on. What happened before the server began to watch is found by reading: the server tells at which
// revision it began.
func (w *watch) request() *pb.WatchRequest {
	create := &pb.WatchCreateRequest{WatchId: w.id, Key: []byte(w.key)}
	if w.end != "" {
		create.RangeEnd = []byte(w.end)
	}
	// The server then sends deletions only, so a holder that rewrites its key (see Renew) does not wake its waiter.
	if !w.puts {
		create.Filters = []pb.WatchCreateRequest_FilterType{pb.WatchCreateRequest_NOPUT}
	}
	return &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: create}}
}

// cancelRequest ends the watch on the server.
func (w *watch) cancelRequest() *pb.WatchRequest {
	cancel := &pb.WatchCancelRequest{WatchId: w.id}
	return &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CancelRequest{CancelRequest: cancel}}
}

// progressRequest asks for a sign of life.
func progressRequest() *pb.WatchRequest {
	return &pb.WatchRequest{
		RequestUnion: &pb.WatchRequest_ProgressRequest{ProgressRequest: new(pb.WatchProgressRequest)},
	}
}

// refusesWatch reports whether a server does not begin to watch. One that lagged behind until its history was compacted
// is not refused: it is begun anew.
func refusesWatch(r *pb.WatchResponse) bool { return r.Created && r.Canceled && r.CompactRevision == 0 }

// received records what the server says about w. The caller holds listener.mu.
func (w *watch) received(r *pb.WatchResponse) {
	switch {
	// It is not told yet: the token of the stream may have run out, and the next stream shows another.
	case refusesWatch(r) && !w.refused:
		w.refused = true
		return
	case r.Canceled && r.CompactRevision == 0:
		w.err = errors.New("etcd: the server refuses to watch: " + r.CancelReason)
	case r.Created:
		w.created, w.begun, w.refused = r.Header.Revision, true, false
	case len(r.Events) > 0:
		// The last event of a response is the newest.
		w.changed = r.Events[len(r.Events)-1].Kv.ModRevision
		if w.keep {
			for _, event := range r.Events {
				w.events = append(w.events, (*clientv3.Event)(event))
			}
		}
	default:
		return
	}
	w.tell()
}

// One stream of the listener, from its opening to its end: what is written to it, and when it counts as dead.
//
// A stream has one reading goroutine (listen) and one writing goroutine (write); either ends both. Each way in which a
// member falls silent has its own bound: pulsate counts missing answers, and sendInTime cuts the stream if a message is
// not read.

// listen opens a stream, begins all watches on it, and handles what comes until it ends.
func (e *listener) listen(parent context.Context) error {
	// Without a leader a member would keep the stream open and be silent; this makes the member close it.
	ctx, cut := context.WithCancel(clientv3.WithRequireLeader(parent))
	var writer sync.WaitGroup
	defer writer.Wait() // it ends with ctx
	defer cut()
	stream, err := e.remote.Watch(ctx)
	if err != nil {
		return err
	}
	e.begin()
	defer e.end()
	writer.Go(func() {
		defer cut() // a stream that cannot be written to is of no use
		e.write(ctx, stream, cut)
	})
	for {
		r, err := stream.Recv()
		if err != nil {
			return err
		}
		if e.received(r) {
			return errRefused
		}
	}
}

// errRefused ends a stream on which a server refuses to watch. With users, what counts is the token with which the
// stream was opened. It may have run out although the client's requests show another by now. So a watch is asked for
// once more, on another stream.
var errRefused = errors.New("etcd: a server refuses to watch")

// begin starts every watch on a new stream.
func (e *listener) begin() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.open, e.outbox, e.asked = true, nil, nil
	// The answers to the watches come at once. If none comes within a pulse, the member hangs, and the next stream may
	// be to another one. Each stream in a row gets more time, because all members may be slow.
	e.silent = max(0, silences-e.mute)
	e.mute++
	for _, w := range e.watches {
		e.send(w.request())
	}
}

// end records that there is no stream. The watches stay: the next stream begins them again.
func (e *listener) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.open, e.outbox = false, nil
}

// write sends what is in the outbox, and asks for signs of life, until ctx ends, the stream breaks, or the server is
// silent for too long. It is the stream's writing goroutine. Only one goroutine may send on a stream of grpc, so
// requests for watches and signs of life go out here alone.
func (e *listener) write(ctx context.Context, stream pb.Watch_WatchClient, cut context.CancelFunc) {
	pulse := time.NewTicker(e.pulse)
	defer pulse.Stop()
	for ticks := 1; ; {
		for _, r := range e.collect() {
			if e.sendInTime(stream, r, cut) != nil { // the reader learns too what broke it
				return
			}
		}
		select {
		case <-e.post:
		case <-pulse.C:
			asks, dead := e.pulsate(ticks)
			if dead {
				return
			}
			if asks && e.sendInTime(stream, progressRequest(), cut) != nil {
				return
			}
			ticks++
		case <-ctx.Done():
			return
		}
	}
}

// sendInTime sends one message, and cuts the stream if that takes for as long as signs of life may be missing. Send
// blocks while the server leaves some 128 KiB unread, the requests for more than 2,000 watches. If it has hung, only
// this notices: the goroutine that would ask for a sign of life stands in Send.
func (e *listener) sendInTime(stream pb.Watch_WatchClient, r *pb.WatchRequest, cut context.CancelFunc) error {
	late := time.AfterFunc(silences*e.pulse, cut)
	defer late.Stop()
	return stream.Send(r)
}

// pulsate reports whether it is time to ask for a sign of life, and whether so many were missing that the stream is
// dead.
func (e *listener) pulsate(ticks int) (asks, dead bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch waiting := len(e.watches) - 1; { // one is the session's own
	case e.silent >= silences:
		return false, true
	case waiting < 0, waiting == 0 && e.silent == 0 && ticks%idlePulses != 0: // without a watch servers may not answer
		return false, false
	}
	e.silent++
	return true, false
}

// collect empties the outbox.
func (e *listener) collect() []*pb.WatchRequest {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := e.outbox
	e.outbox = nil
	return out
}
