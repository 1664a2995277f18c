package drivertest

import (
	"math"
	"sync"

	"github.com/interlock-go/interlock/driver"
)

// The promise of fencing: tokens grow with every grant of a lock, and nonces are unique, whatever happened in between.

func fencing() []behaviour {
	return []behaviour{
		{sentence: "tokens grow and nonces differ from grant to grant", run: tokensGrow},
		{sentence: "tokens grow in the order of the grants in a crowd", run: tokensGrowInACrowd},
		{sentence: "tokens grow when a hold passes to a waiter", run: tokensGrowOnHandOff},
		{sentence: "tokens grow past a whole block", run: tokensGrowPastABlock},
		{
			sentence: "tokens grow over the end of a lease", run: tokensGrowOverExpiry,
			ends: on(driver.Leases), needs: needing(driver.Expiry),
		},
		{sentence: "tokens grow over a break", run: tokensGrowOverBreak, needs: needing(driver.Breaking)},
		{
			sentence: "tokens grow over the last release of a named owner", run: tokensGrowOverANamedOwner,
			needs: needing(driver.NamedOwners),
		},
		{
			sentence: "tokens grow from writers to readers and back", run: tokensGrowOverReaders,
			kinds: []driver.Kind{driver.KindRWMutex},
		},
		{sentence: "tokens grow over a requeue", run: tokensGrowOverRequeue, wants: requeues},
		{sentence: "tokens grow although no client was left in between", run: tokensGrowWhileNobodyIsThere},
	}
}

// tokenOrder checks that each grant that it is shown is newer than all before.
type tokenOrder struct {
	tr     *trial
	last   uint64 // the last token of the newest block
	nonces map[string]bool
}

func (tr *trial) tokenOrder() *tokenOrder { return &tokenOrder{tr: tr, nonces: make(map[string]bool)} }

// add checks one grant, and returns it for the caller to go on with.
func (l *tokenOrder) add(h *hold, when string) *hold {
	l.tr.Helper()
	g := h.g
	switch {
	case g.Tokens < 1:
		l.tr.Fatalf("%s: the grant has %d tokens, want at least 1", when, g.Tokens)
	case g.Token <= l.last:
		l.tr.Fatalf("%s: the token is %d, want more than %d, the last of the block that was granted before",
			when, g.Token, l.last)
	// A token, and the last of its block, must fit a signed 64-bit column.
	case g.Token > math.MaxInt64-uint64(g.Tokens):
		l.tr.Fatalf("%s: the token is %d, want less than 1<<63", when, g.Token)
	case g.Nonce == "" || l.nonces[g.Nonce]:
		l.tr.Fatalf("%s: the nonce is %q, want one that no grant had before", when, g.Nonce)
	}
	l.last = g.Token + uint64(g.Tokens) - 1
	l.nonces[g.Nonce] = true
	return h
}

// Two clients take turns, so a counter of each client's own is found out.
func tokensGrow(tr *trial) {
	l, clients := tr.tokenOrder(), []*client{tr.client(), tr.client()}
	for i := range 20 {
		c := clients[i%2]
		l.add(c.take(c.ask(tr.mutex())), "after a release").release()
	}
}

// The grants are noted inside the lock, so their order is that of the lock.
func tokensGrowInACrowd(tr *trial) {
	clients := []*client{tr.client(), tr.client(), tr.client()}
	var grants []*hold // appended to only while holding the lock, so in the order of the grants
	var mu sync.Mutex  // for the race detector, which does not know the lock under test
	var all sync.WaitGroup
	for i := range 3 {
		c := clients[i]
		all.Go(func() {
			for range 8 {
				h, err := c.acquire(c.ask(tr.mutex()))
				if err != nil {
					tr.Errorf("%s: acquire: %v", c.name, err)
					return
				}
				mu.Lock()
				grants = append(grants, h)
				mu.Unlock()
				if err := c.endUntilKnown(tr.mutex(), h.r.ID); err != nil {
					tr.Errorf("%s: release: %v", c.name, err)
				}
			}
		})
	}
	all.Wait()
	l := tr.tokenOrder()
	for _, h := range grants {
		l.add(h, "in a crowd")
	}
}

// A hand-off may mint on another path than a free lock.
func tokensGrowOnHandOff(tr *trial) {
	l, a, b := tr.tokenOrder(), tr.client(), tr.client()
	h := l.add(a.take(a.ask(tr.mutex())), "first")
	w := b.queue(b.ask(tr.mutex()))
	h.release()
	l.add(w.granted("after the release"), "handed over").release()
}

// The whole block counts: a later grant must be larger than its last token, also if only one of it was used.
func tokensGrowPastABlock(tr *trial) {
	l, a, b := tr.tokenOrder(), tr.client(), tr.client()
	for _, n := range []int{16, 1, 1 << 14, 1, 1 << 14, 3, 1} {
		if n > 3 {
			tr.pass(settle) // an engine whose tokens are ahead of its clock grants no block
		}
		r := a.ask(tr.mutex())
		r.Tokens = n
		h := l.add(a.take(r), "after a block")
		if h.g.Tokens > n {
			tr.Fatalf("asked for %d tokens, granted %d", n, h.g.Tokens)
		}
		h.release()
		a, b = b, a
	}
}

// The lock ends by its lease, and what it remembers must not end with it.
func tokensGrowOverExpiry(tr *trial) {
	l, a, b := tr.tokenOrder(), tr.client(), tr.client()
	r := a.briefly(tr.mutex())
	r.Tokens = 16
	l.add(a.take(r), "first")
	l.add(b.getsIn(tr.mutex(), tr.afterlife(), "after the lease"), "after the lease").release()
}

// A break must not reset the counter.
func tokensGrowOverBreak(tr *trial) {
	l, a, b := tr.tokenOrder(), tr.client(), tr.client()
	r := a.ask(tr.mutex())
	r.Tokens = 16
	h := l.add(a.take(r), "first")
	tr.must(b.breaks(tr.mutex(), h.g.Token), "break")
	l.add(b.take(b.ask(tr.mutex())), "after a break").release()
}

// Every client is closed in between. A counter that dies with the last client starts again.
func tokensGrowWhileNobodyIsThere(tr *trial) {
	l := tr.tokenOrder()
	for range 3 {
		ctx, cancel := tr.bound()
		c := tr.over(tr.h.Open(ctx, tr.t), "the only client")
		l.add(c.take(c.ask(tr.mutex())), "after all clients were closed").release()
		tr.must(c.d.Close(), "close")
		cancel()
	}
}

// The last hold of a named owner may end on another path than an anonymous one's.
func tokensGrowOverANamedOwner(tr *trial) {
	l, a, b := tr.tokenOrder(), tr.client(), tr.client()
	for range 3 {
		l.add(a.take(a.asOwner("order-7", tr.mutex())), "of a named owner").release()
		a, b = b, a
	}
}

// Readers and writers share one order, because a fence compares them.
func tokensGrowOverReaders(tr *trial) {
	l, a, b := tr.tokenOrder(), tr.client(), tr.client()
	for range 3 {
		l.add(a.take(a.writer()), "a writer").release()
		l.add(b.take(b.reader()), "a reader").release()
	}
}

// A requeue is a new acquisition although its owner is the same.
func tokensGrowOverRequeue(tr *trial) {
	l, a := tr.tokenOrder(), tr.client()
	r := a.ask(tr.mutex())
	r.Tokens = 16
	h := l.add(a.take(r), "first")
	for range 3 {
		h = l.add(h.mustRequeue(a.ask(tr.mutex()), "with nobody waiting"), "after a requeue")
	}
	h.release()
}
