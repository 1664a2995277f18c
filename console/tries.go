package console

import (
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"
)

const (
	// firstPause is how long an address waits after a wrong token; each further one doubles it, up to longestPause.
	firstPause   = time.Second
	longestPause = 30 * time.Second
	// maxSources bounds the addresses that are remembered.
	maxSources = 10_000
)

// tries slows guessing down. An address that was wrong is not listened to for a while: not even a right token would be
// told from a wrong one, so that trying many at once is of no use.
type tries struct {
	mu   sync.Mutex // guards last
	last map[string]failure
}

type failure struct {
	times int
	until time.Time
}

// wait returns how long an address has to wait still.
func (t *tries) wait(from string) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return time.Until(t.last[from].until)
}

// tell takes a try in.
func (t *tries) tell(from string, right bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if right {
		delete(t.last, from)
		return
	}
	now := time.Now()
	if len(t.last) >= maxSources {
		for key, f := range t.last {
			if now.After(f.until) {
				delete(t.last, key)
			}
		}
	}
	if len(t.last) >= maxSources {
		clear(t.last) // who has this many addresses is not slowed by any of them
	}
	f := t.last[from]
	f.times++
	f.until = now.Add(min(firstPause<<min(f.times-1, 10), longestPause))
	t.last[from] = f
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

// tooSoon answers who has to wait.
func tooSoon(w http.ResponseWriter, wait time.Duration) {
	seconds := int((wait + time.Second - 1) / time.Second)
	w.Header().Set("Retry-After", strconv.Itoa(seconds))
	refuse(w, http.StatusTooManyRequests, "the last token was wrong", "wait "+strconv.Itoa(seconds)+" s")
}
