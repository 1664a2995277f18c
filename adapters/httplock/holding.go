package httplock

import (
	"bufio"
	"net"
	"net/http"
	"strconv"
)

// holding is the ResponseWriter of a handler. It holds back the last byte of a response whose length was announced, and
// a flush that would complete one without a body: a client that has read the whole response must find the lock free,
// and the server sends what it has while the handler still runs.
type holding struct {
	http.ResponseWriter

	head bool // the request's method is HEAD: the answer has no body, whatever its length
	// The final header was written. Until then nothing is known of the length.
	begun bool
	left  int64  // bytes of the announced length that the handler has not written; -1 if none was announced
	last  []byte // the byte that is held back
}

// hijackable is holding over a writer whose connection can be taken over, as by a websocket.
type hijackable struct{ *holding }

// Hijack takes the connection over. What the handler sends on it is its own.
func (h hijackable) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return h.ResponseWriter.(http.Hijacker).Hijack()
}

// hold returns a writer for a handler, and what sends the rest of the response once the lock is free.
func hold(w http.ResponseWriter, r *http.Request) (to http.ResponseWriter, rest func()) {
	h := &holding{ResponseWriter: w, head: r.Method == http.MethodHead, left: -1}
	if _, ok := w.(http.Hijacker); ok {
		return hijackable{h}, h.rest
	}
	return h, h.rest
}

// Unwrap lets http.ResponseController find what else the writer can do.
func (h *holding) Unwrap() http.ResponseWriter { return h.ResponseWriter }

// WriteHeader notes how long the answer will be, as the server does: from the header at this moment.
func (h *holding) WriteHeader(status int) {
	final := status >= http.StatusOK || status == http.StatusSwitchingProtocols
	if final && !h.begun {
		h.begun = true
		n, err := strconv.ParseInt(h.Header().Get("Content-Length"), 10, 64)
		switch {
		case h.head || status == http.StatusNoContent || status == http.StatusNotModified:
			h.left = 0 // complete with its header
		case err == nil && n >= 0:
			h.left = n
		}
	}
	h.ResponseWriter.WriteHeader(status)
}

// Write writes all but the last byte of the announced length. A handler that writes more hears so, as from the server.
func (h *holding) Write(p []byte) (int, error) {
	if !h.begun {
		h.WriteHeader(http.StatusOK)
	}
	size := int64(len(p))
	switch {
	case h.head || h.left < 0 || h.left == 0 && h.last == nil: // the server knows what such a body is worth
		return h.ResponseWriter.Write(p)
	case size > h.left:
		return 0, http.ErrContentLength
	case size < h.left || size == 0:
		n, err := h.ResponseWriter.Write(p)
		h.left -= int64(n)
		return n, err
	}
	n, err := h.ResponseWriter.Write(p[:size-1])
	h.left -= int64(n)
	if err != nil {
		return n, err
	}
	h.left, h.last = 0, []byte{p[size-1]}
	return len(p), nil
}

// Flush is http.Flusher, for handlers that ask for it by name.
func (h *holding) Flush() { _ = h.FlushError() }

// FlushError sends what was written, unless the response would be complete by that.
func (h *holding) FlushError() error {
	if !h.begun {
		h.WriteHeader(http.StatusOK)
	}
	if h.left == 0 && h.last == nil {
		return nil
	}
	return http.NewResponseController(h.ResponseWriter).Flush()
}

// rest sends what was held back.
func (h *holding) rest() {
	if h.last != nil {
		_, _ = h.ResponseWriter.Write(h.last) // a client that has gone needs no answer
	}
}
