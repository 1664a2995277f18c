// One watch: what it is about and what is new. listener.go has them all on its stream.
//
// A hint may be late, doubled, or about a change that means nothing, and it may stand for several changes. None of that
// matters, because its owner reads what is so. What must not happen is a change without a hint: so the hint comes after
// the fields are set, under the same mutex, and a hint that is already waiting covers what was added to it.

package etcdlock

import (
	"errors"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

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
