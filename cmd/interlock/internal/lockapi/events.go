// The stream of a lease's events, as server-sent events. server.go routes it here.

package lockapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

const (
	// heartbeat is how often a stream says something, so that proxies keep it open and both ends notice a dead one.
	heartbeat = 10 * time.Second
	// readTime is how long a client may take to read an event before its stream is ended.
	readTime = 30 * time.Second
)

// events streams what happens to a lease: held at the start, wanted once, and lost or released at the end. A stream
// that ends in another way says nothing about the lease, whose deadline counts as before.
func (s *Server) events(w http.ResponseWriter, r *http.Request, h *held) error {
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		return problemf(http.StatusServiceUnavailable, "full", "this server has as many streams as it may")
	}
	out := &stream{w, http.NewResponseController(w)}
	_ = out.control.SetReadDeadline(time.Time{}) // the server's own is that of a request, and would end the stream
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // asks proxies not to wait for more
	// The first frame is how soon a browser reconnects, in milliseconds; it also sends the headers.
	if !out.send("retry: 2000\n\n") {
		return nil
	}
	s.follow(r, out, h)
	return nil
}

// follow sends events until the lease ends, the client goes or the server closes.
func (s *Server) follow(r *http.Request, out *stream, h *held) {
	alive := time.NewTicker(heartbeat)
	defer alive.Stop()
	byOther, byOurs := h.lease.Wanted(), h.wantedC // wanted by a client of another server, or of this one
	if live := out.tell(h, ""); !live {
		return
	}
	for {
		live := true
		select {
		case <-r.Context().Done():
			return
		case <-s.ending.Done():
			return
		case <-h.lease.Lost():
			out.tell(h, "")
			return
		case <-h.releasedC:
			out.tell(h, "")
			return
		case <-byOther:
			byOther, byOurs = nil, nil // they stay closed: once is enough
			live = out.tell(h, "wanted")
		case <-byOurs:
			byOther, byOurs = nil, nil
			live = out.tell(h, "wanted")
		case <-alive.C:
			live = out.send(": alive\n\n")
		}
		if !live {
			return
		}
	}
}

// stream is a connection to one client.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

// tell sends the lease as an event, named by its state unless it is held and something happened to it. It reports
// whether more can follow.
func (o *stream) tell(h *held, happened string) bool {
	object, _ := h.object()
	name := object.State
	if name == "held" && happened != "" {
		name = happened
	}
	data, err := json.Marshal(object)
	if err != nil {
		panic(err) // as in write
	}
	return o.send(fmt.Sprintf("event: %s\ndata: %s\n\n", name, data)) && object.State == "held"
}

// send reports whether the client may have got the frame.
func (o *stream) send(frame string) bool {
	_ = o.control.SetWriteDeadline(time.Now().Add(readTime)) // a server without deadlines has its own rules
	if _, err := o.w.Write([]byte(frame)); err != nil {
		return false
	}
	return o.control.Flush() == nil
}
