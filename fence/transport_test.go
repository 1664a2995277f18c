package fence

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// closing is a body that records whether it was closed.
type closing struct {
	io.Reader
	closed bool
}

func (c *closing) Close() error {
	c.closed = true
	return nil
}

func TestTransport_ShowsTheStampOfEachMoment_AndSendsNothingAfterTheEnd(t *testing.T) {
	var guard MemoryGuard
	served := 0
	name := func(*http.Request) string { return "stock" }
	server := httptest.NewServer(Middleware(guard.Check, name)(
		http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served++ })))
	defer server.Close()
	now, lasts := writer(2, "b"), true
	client := &http.Client{Transport: &Transport{
		Stamp: func() (Stamp, bool) { return now, lasts }, Base: server.Client().Transport,
	}}
	send := func() (int, *closing, error) {
		body := &closing{Reader: strings.NewReader("left=0")}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, body)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(r)
		if len(r.Header) > 0 {
			t.Errorf("the caller's request was changed: %v", r.Header)
		}
		if err != nil {
			return 0, body, err
		}
		return answer.StatusCode, body, answer.Body.Close()
	}
	if status, _, err := send(); status != http.StatusOK || err != nil {
		t.Errorf("the holder: got %d, %v", status, err)
	}
	now = writer(1, "a")
	if status, _, err := send(); status != http.StatusPreconditionFailed || err != nil {
		t.Errorf("who was overtaken: got %d, %v", status, err)
	}
	lasts = false
	if _, body, err := send(); !errors.Is(err, ErrEnded) || !body.closed {
		t.Errorf("after the end: got %v, body closed: %v", err, body.closed)
	}
	if served != 1 {
		t.Errorf("%d requests were served, want 1", served)
	}
}

// A request that was put together by hand may lack what http.NewRequest makes.
func TestTransport_OfARequestWithoutHeaders_ShowsTheStamp(t *testing.T) {
	var guard MemoryGuard
	server := httptest.NewServer(Middleware(guard.Check, func(*http.Request) string { return "stock" })(
		http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	defer server.Close()
	to, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	transport := &Transport{
		Stamp: func() (Stamp, bool) { return writer(1, "a"), true }, Base: server.Client().Transport,
	}
	answer, err := transport.RoundTrip((&http.Request{URL: to}).WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	if answer.Body.Close(); answer.StatusCode != http.StatusOK {
		t.Errorf("got %s", answer.Status)
	}
}
