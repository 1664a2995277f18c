// One stream of the listener, from its opening to its end: what is written to it, and when it counts as dead.
//
// A stream has one reading goroutine (listen) and one writing goroutine (write); either ends both. Each way in which a
// member falls silent has its own bound: pulsate counts missing answers, and sendInTime cuts the stream if a message is
// not read.

package etcdlock

import (
	"context"
	"errors"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

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
