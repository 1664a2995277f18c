package servers

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Direction is a way through a [Proxy].
type Direction int

// The ways of bytes through a Proxy.
const (
	ToServer Direction = 1 << iota // requests
	ToClient                       // replies

	BothWays = ToServer | ToClient
)

// ways are the single directions, which index the fields of a Proxy.
var ways = [...]Direction{ToServer, ToClient}

// Proxy stands between clients and one server and plays a bad network. Its methods may be called at any time by any
// goroutine. A change holds for the connections that exist as well, and when the method returns it is in force: no byte
// passes any more that should not.
//
// The nodes of a Redis Cluster and of a Sentinel deployment tell clients their own addresses, so a Proxy is of use
// before a server that stands alone, and before each of several whose clients keep to the addresses that they were
// given; or, in a [Network], in the place of each: see [NewProxyInPlace].
type Proxy struct {
	t      testing.TB
	at     *Member // where it is; nil is this process's own network
	addr   string
	target string
	all    sync.WaitGroup // of the connections

	// door is held while connections begin or cease to be accepted, which mu cannot be: to cease is to wait for the
	// goroutine that accepts, and that takes mu.
	door sync.Mutex

	// mu guards what follows. Who forwards a chunk holds it for reading meanwhile, which is why a change waits for
	// chunks that are on their way; each is for at most chunkTime.
	mu       sync.RWMutex
	rules    [len(ways)]rule
	changed  chan struct{} // closed and replaced at each change of rules
	listener *listener     // nil while connections are refused
	ended    bool          // with the test
	links    map[*link]bool
	most     int // connections at once; 0 is any number
	tap      Tap // of the connections to come; nil if nobody listens

	accepted atomic.Int64
	passed   [len(ways)]atomic.Int64 // bytes
	writes   [len(ways)]atomic.Int64
}

// rule says what happens in one direction.
type rule struct {
	hold  bool
	drop  bool
	delay time.Duration
	slice time.Duration // if not 0: bytes pass one by one, with so long between them
	most  int           // if not 0: so many bytes pass on each connection, then it is reset
}

// NewProxy starts a proxy before the server at target, as host:port. It lets everything pass, and ends with t.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	return NewProxyAt(t, nil, target)
}

// NewProxyAt starts a proxy for the processes of a member of a [Network]: they alone can connect to it, and
// what it sends comes from the member, so that a cut between that and the server is one for its connections
// as well. Nil is no member.
func NewProxyAt(t testing.TB, at *Member, target string) *Proxy {
	t.Helper()
	p := newProxy(t, at, target)
	var err error
	for range attempts {
		if err = p.settle(); err == nil {
			t.Cleanup(p.close)
			return p
		}
	}
	t.Fatalf("proxy: %v", err)
	return nil
}

func newProxy(t testing.TB, at *Member, target string) *Proxy {
	return &Proxy{t: t, at: at, target: target, changed: make(chan struct{}), links: map[*link]bool{}}
}

// settle chooses the proxy's port. Another process may take it before it is listened on.
func (p *Proxy) settle() error {
	ports, err := freePorts(1)
	if err != nil {
		return err
	}
	p.addr = (&Site{Host: host, Ports: ports}).addr(0)
	return p.listen()
}

// Addr returns the host:port that clients connect to.
func (p *Proxy) Addr() string { return p.addr }

// Pass lets everything pass again, what was held first, and accepts connections again. A connection that has lost bytes
// by [Proxy.DropReplies] stays mute in that direction: a stream with a gap would be nonsense.
func (p *Proxy) Pass() {
	p.t.Helper()
	p.change(func() { p.rules, p.most = [len(ways)]rule{}, 0 })
	if err := again(p.listen); err != nil {
		p.t.Errorf("proxy: %v", err)
	}
}

// BlackHole lets nothing pass in the given directions until [Proxy.Pass], neither bytes nor the end of a connection.
// Connections stay open, and new ones are accepted. What is sent meanwhile arrives after Pass, as after a cable is
// plugged in again.
func (p *Proxy) BlackHole(d Direction) { p.rule(d, func(r *rule) { r.hold = true }) }

// Delay makes what passes in the given directions arrive later. The rate is not limited. What is on its way already is
// delayed as well, or no longer.
func (p *Proxy) Delay(d Direction, by time.Duration) { p.rule(d, func(r *rule) { r.delay = by }) }

// DropReplies loses what the server says from now on, while requests arrive. See Pass for how it ends.
func (p *Proxy) DropReplies() { p.rule(ToClient, func(r *rule) { r.drop = true }) }

// Slice has what passes in the given directions arrive byte by byte, with a pause between two.
func (p *Proxy) Slice(d Direction, pause time.Duration) { p.rule(d, func(r *rule) { r.slice = pause }) }

// HalfReplies resets each connection, also those to come, when the server has said so many more bytes
// on it, which are let pass.
func (p *Proxy) HalfReplies(after int) {
	p.change(func() {
		p.rules[1].most = after
		for l := range p.links {
			l.said = 0
		}
	})
}

// Limit resets all connections, and lets no more than so many be open at once from now on: a further one is reset.
func (p *Proxy) Limit(connections int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.most = connections
	for l := range p.links {
		l.reset()
	}
}

// Refuse refuses new connections until [Proxy.Pass]. Those that exist stay; one so young that the proxy has not
// accepted it yet is reset.
func (p *Proxy) Refuse() {
	p.door.Lock()
	defer p.door.Unlock()
	p.mu.Lock()
	l := p.listener
	p.listener = nil
	p.mu.Unlock()
	if l != nil {
		_ = l.Close() // there is nothing that it could lose
		<-l.done      // until then the port is open: Accept keeps the socket
	}
}

// Reset cuts all connections with a reset, to both ends. New ones are as welcome as before.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.reset()
	}
}

// Connections returns how many connections are open, and how many there were in all.
func (p *Proxy) Connections() (open, all int) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return len(p.links), int(p.accepted.Load())
}

// Bytes returns how many bytes have passed in the given directions.
func (p *Proxy) Bytes(d Direction) int64 {
	var n int64
	for i, way := range ways {
		if d&way != 0 {
			n += p.passed[i].Load()
		}
	}
	return n
}

// rule changes the rules of the given directions.
func (p *Proxy) rule(d Direction, f func(r *rule)) {
	p.change(func() {
		for i, way := range ways {
			if d&way != 0 {
				f(&p.rules[i])
			}
		}
	})
}

func (p *Proxy) change(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
	close(p.changed)
	p.changed = make(chan struct{})
}
