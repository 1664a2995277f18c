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
	mu   sync.Mutex // guards last, and is held while a try is judged
	last map[string]failure
}

type failure struct {
	times int
	until time.Time
}

// judge asks isRight about a try from an address, and counts it. While the address has to wait after a wrong try, judge
// returns how long, and does not ask. All of it is under mu, so of wrong tries at the same time only the first is
// judged.
func (t *tries) judge(from string, isRight func() bool) (wait time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if wait = time.Until(t.last[from].until); wait > 0 {
		return wait
	}
	if isRight() {
		delete(t.last, from)
	} else {
		t.wrong(from)
	}
	return 0
}

// wrong counts a wrong try. The caller holds t.mu.
func (t *tries) wrong(from string) {
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
