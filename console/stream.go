package console

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/console/board"
)

const (
	// maxStreams bounds the connections that are kept open for streams of events.
	maxStreams = 256
	// heartbeat is how often a stream says something at least, so that proxies keep it open, and both ends notice a
	// dead one. Looks at an engine that does not answer are further apart.
	heartbeat = 10 * time.Second
	// sessionLook is how often a stream looks whether the session is over with which it was opened.
	sessionLook = 5 * time.Second
	// readTime is how long a browser may take to read what was sent before its stream is ended. It comes back, and gets
	// what it has missed in one message.
	readTime = 30 * time.Second
)

// newRun returns a word that no other Console has.
func newRun() string { return rand.Text()[:10] }

// serveEvents sends a board and then its changes, until the browser goes, its session is over or the Console is closed.
func (con *Console) serveEvents(w http.ResponseWriter, r *http.Request) {
	select {
	case con.streams <- struct{}{}:
		defer func() { <-con.streams }()
	default:
		w.Header().Set("Retry-After", "10")
		refuse(w, http.StatusServiceUnavailable, fmt.Sprintf("%d browsers watch already", maxStreams), "close some")
		return
	}
	s := &stream{w, http.NewResponseController(w)}
	reader := con.poller.Reader(con.revision(r.Header.Get("Last-Event-ID")))
	defer reader.Close()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // asks proxies not to wait for more
	if !s.send([]byte("retry: 2000\n\n")) {
		return
	}
	alive := time.NewTicker(heartbeat)
	defer alive.Stop()
	sessions := time.NewTicker(sessionLook) // not the heartbeat, which changes put off
	defer sessions.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-sessions.C:
			if !con.entry.stays(r) {
				return
			}
		case <-alive.C:
			frame := []byte("event: alive\ndata: {}\n\n") // no comment: scripts do not see those
			if u, ok := reader.Again(); ok {
				frame = con.frames.of(con.run, u)
			}
			if !s.send(frame) {
				return
			}
		case _, open := <-reader.Changed():
			if !open {
				return
			}
			if u, ok := reader.Next(); ok && !s.send(con.frames.of(con.run, u)) {
				return
			}
			alive.Reset(heartbeat)
		}
	}
}

// revision reads what a browser sends that comes back. Another Console's revisions mean nothing to this one.
func (con *Console) revision(id string) uint64 {
	run, number, _ := strings.Cut(id, "-")
	revision, err := strconv.ParseUint(number, 10, 64)
	if err != nil || run != con.run {
		return 0
	}
	return revision
}

// stream is a connection to one browser.
type stream struct {
	w  http.ResponseWriter
	to *http.ResponseController
}

// send reports whether the browser may have got it.
func (s *stream) send(frame []byte) bool {
	_ = s.to.SetWriteDeadline(time.Now().Add(readTime)) // a server that has no deadlines has its own rules
	if _, err := s.w.Write(frame); err != nil {
		return false
	}
	return s.to.Flush() == nil
}

// frames keeps the last message, because all browsers that keep up get the same one.
type frames struct {
	mu    sync.Mutex // guards what follows
	last  board.Update
	frame []byte
}

// of returns the message of an update.
func (f *frames) of(run string, u board.Update) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.frame != nil && f.last.Board == u.Board && f.last.Since == u.Since && f.last.Revision == u.Revision {
		return f.frame
	}
	name, v := "change", any(u.Change)
	if u.Board != nil {
		name, v = "board", u.Board
	}
	text, err := json.Marshal(v)
	if err != nil { // boards have nothing in them that could not be encoded
		return nil
	}
	f.last = board.Update{Since: u.Since, Revision: u.Revision, Board: u.Board}
	f.frame = fmt.Appendf(nil, "event: %s\nid: %s-%d\ndata: %s\n\n", name, run, u.Revision, text)
	return f.frame
}
