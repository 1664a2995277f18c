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
// The stamp is taken anew for each request, redirects among them. When the hold has ended the request is not sent, and
// the error matches [ErrEnded]. That is a courtesy: a request that is on its way when the hold ends is refused by the
// other side alone, with 412 if another holder has been there since, which Transport leaves as it is.
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
			_ = r.Body.Close() // which a RoundTripper has to do, whatever happens
		}
		return nil, fmt.Errorf("fence: %s %s was not sent: %w", r.Method, r.URL.Redacted(), ErrEnded)
	}
	fenced := r.Clone(r.Context())
	SetHeader(fenced.Header, s)
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	return base.RoundTrip(fenced)
}
