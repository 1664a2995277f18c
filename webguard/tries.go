package webguard

import (
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

const (
	// pause is between two answers to wrong tokens that go to one address.
	pause = time.Second
	// longestWait is how long such an answer may wait: less than servers and proxies give a request.
	longestWait = 10 * time.Second
	// maxSources bounds the addresses that are remembered.
	maxSources = 10_000
)

// tries slows guessing down: answers to wrong tokens of one address take turns, a pause apart. A right token is not
// asked about here, because whoever guesses from the same address must not keep it out.
type tries struct {
	mu   sync.Mutex           // guards next
	next map[string]time.Time // by address: when the next wrong token may be answered
}

// wrong counts a wrong token, and returns how long its answer waits. It is not ok if too many wait already: then the
// answer may come at once, as a wait would only cost memory.
func (t *tries) wrong(from string, now time.Time) (wait time.Duration, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.next) >= maxSources {
		t.forget(now)
	}
	turn := t.next[from]
	if turn.Before(now) {
		turn = now
	}
	if wait = turn.Sub(now); wait > longestWait {
		return wait, false
	}
	t.next[from] = turn.Add(pause)
	return wait, true
}

// forget drops addresses whose pause is over, and all of them if none is. The caller holds t.mu.
func (t *tries) forget(now time.Time) {
	for key, turn := range t.next {
		if turn.Before(now) {
			delete(t.next, key)
		}
	}
	if len(t.next) >= maxSources {
		clear(t.next) // whoever has this many addresses is not slowed by any of them
	}
}

// source is the address that a request came from. Of IPv6 it is the network: a visitor has all addresses in it.
func source(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	addr, err := netip.ParseAddr(host)
	if err != nil || addr.Unmap().Is4() {
		return host
	}
	network, err := addr.WithZone("").Prefix(64)
	if err != nil {
		return host
	}
	return network.String()
}
