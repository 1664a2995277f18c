package fence

import (
	"errors"
	"fmt"
	"net/http"
)

// ErrEnded says that a request was not sent because the hold that it belongs to has ended.
var ErrEnded = errors.New("the hold has ended")

// Transport is an http.RoundTripper that shows a stamp with each request, for a resource behind a [Middleware]:
//
//	client := &http.Client{Transport: &fence.Transport{Stamp: lease.Stamp}}
//
// The stamp is taken anew for each request, redirects included. When the hold has ended the request is not sent, and
// the error matches [ErrEnded]. That saves a request but does not protect: the hold may end while the request is under
// way. Then only the other side can refuse it, with 412 if another holder has been there since; Transport leaves that
// answer as it is.
//
// It is safe for concurrent use if Stamp and Base are.
type Transport struct {
	// Stamp returns the stamp to show, and whether the hold still lasts: it is the method Stamp of a lease, never nil.
	Stamp func() (Stamp, bool)
	// Base sends the requests. nil is http.DefaultTransport.
	Base http.RoundTripper
}

// RoundTrip sends a copy of the request that has the stamp.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	s, lasts := t.Stamp()
	if !lasts {
		if r.Body != nil {
			_ = r.Body.Close() // a RoundTripper must close it, whatever happens
		}
		return nil, fmt.Errorf("fence: %s %s was not sent: %w", r.Method, r.URL.Redacted(), ErrEnded)
	}
	fenced := r.Clone(r.Context())
	if fenced.Header == nil { // of a request that was not made by http.NewRequest
		fenced.Header = make(http.Header)
	}
	SetHeader(fenced.Header, s)
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	return base.RoundTrip(fenced)
}
