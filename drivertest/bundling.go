package drivertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/drivertest/faulty"
)

// The promise of bundling: several locks in one step, all or none, and nobody ever sees a part.

func bundling() []behaviour {
	able := func(sentence string, run func(*trial)) behaviour {
		return behaviour{sentence: sentence, run: run, wants: bundles}
	}
	return []behaviour{
		able("several free locks are granted in one step, each a hold of its own", severalAreGranted),
		able("if one of several locks is held, none is taken, whichever it is", noneIsTakenIfOneIsHeld),
		able("of several locks none is taken before who waits for one", severalOvertakeNobody),
		able("of many who take the same locks at once, in whatever order, one gets all and the others nothing",
			oneOfManyGetsAll),
		able("several requests asked again are the same grants", severalAskedAgain),
		able("several requests of which one is over take nothing when they are asked again", severalOfWhichOneIsOver),
		able("several requests whose reply is lost can be undone", severalAfterLostReply),
		able("a copy of several requests that arrives after they were undone takes nothing", lateCopyOfSeveral),
		able("several requests whose context has ended can be undone", severalWithEndedContext),
		able("a list of requests that is none is refused and takes nothing", listsThatAreNone),
	}
}

// Each grant must be whole, and each hold must end by itself.
func severalAreGranted(tr *trial) {
	a, b := tr.client(), tr.client()
	keys := tr.several()
	holds := a.takeAll(a.askAll(keys), "at first")
	nonces := make(map[string]bool)
	for _, h := range holds {
		if h.g.Token == 0 || h.g.Token >= 1<<63 || h.g.Tokens < 1 || h.g.Nonce == "" || nonces[h.g.Nonce] {
			tr.Fatalf("%q has the grant %+v, want a token, and a nonce that no other has", h.r.Name, h.g)
		}
		if tr.traits.Lifetime == driver.Leases && (h.g.Lease <= 0 || h.g.Sent.IsZero()) {
			tr.Fatalf("%q has the grant %+v, want a lease and the instant from which it counts", h.r.Name, h.g)
		}
		nonces[h.g.Nonce] = true
	}
	for i, h := range holds {
		for _, other := range holds[i:] {
			b.findsHeld(other.r.Key, "before its release")
		}
		h.release()
		b.findsFree(h.r.Key, "after its release")
	}
}

// The held lock is each of them in turn: an engine that takes one after the other keeps those before it.
func noneIsTakenIfOneIsHeld(tr *trial) {
	a, b, c := tr.client(), tr.client(), tr.client()
	keys := tr.several()
	for i, key := range keys {
		h := b.take(b.ask(key))
		a.isRefusedAll(keys, key, "while one is held")
		for j, other := range keys {
			if j != i {
				c.findsFree(other, "after a refusal because of another lock")
			}
		}
		c.findsHeld(key, "after a refusal because of it")
		h.release()
		c.findsAllFree(keys, "when all are released: what was refused must not be queued")
	}
}

// A waiter at one of the locks is in front, although the lock will be free at once.
func severalOvertakeNobody(tr *trial) {
	a, b, c := tr.client(), tr.client(), tr.client()
	keys := tr.several()
	h := a.take(a.ask(keys[2]))
	w := b.queue(b.ask(keys[2]))
	c.isRefusedAll(keys, keys[2], "while somebody waits for one")
	h.release()
	w.granted("after the release").release()
	releaseAll(c.takeAll(c.askAll(keys), "in the end"))
	a.findsAllFree(keys, "in the end")
}

// oneOfManyGetsAll has nobody release before everybody has been answered. So all who were refused were refused because
// one had all. Where the locks are taken one after the other, two who begin at different ends refuse each other.
func oneOfManyGetsAll(tr *trial) {
	clients := []*client{tr.client(), tr.client(), tr.client()}
	keys := tr.several()
	backwards := []driver.Key{keys[3], keys[2], keys[1], keys[0]}
	for range 10 {
		var mu sync.Mutex // guards winners
		var winners [][]*hold
		var all sync.WaitGroup
		start := make(chan struct{})
		for i := range 6 {
			c, wanted := clients[i%len(clients)], keys
			if i%2 == 1 {
				wanted = backwards
			}
			all.Go(func() {
				<-start
				holds, err := c.acquireAll(c.askAll(wanted))
				if err != nil {
					if !errors.Is(err, driver.ErrHeld) || !driver.IsDefinite(err) {
						tr.Errorf("one of many says: %v", err)
					}
					return
				}
				mu.Lock()
				defer mu.Unlock()
				winners = append(winners, holds)
			})
		}
		close(start)
		all.Wait()
		if len(winners) != 1 {
			tr.Fatalf("of 6 who took the same locks at once %d got them, want 1", len(winners))
		}
		releaseAll(winners[0])
	}
	clients[0].findsAllFree(keys, "in the end")
}

// A retry after a lost reply gets the same grants.
func severalAskedAgain(tr *trial) {
	a, b := tr.client(), tr.client()
	keys := tr.several()
	rs := a.askAll(keys)
	holds := a.takeAll(rs, "at first")
	w := b.start(b.ask(keys[1])) // a lock for which somebody waits may be stored in another way
	_ = w.isWaiting()
	for i, again := range a.takeAll(copiesOf(rs), "asked again") {
		holds[i].isSame(again)
	}
	releaseAll(holds)
	w.granted("after one release").release()
	b.findsAllFree(keys, "after one release")
}

// A copy of the step must not take again what was released meanwhile.
func severalOfWhichOneIsOver(tr *trial) {
	a, b := tr.client(), tr.client()
	keys := tr.several()
	rs := a.askAll(keys)
	holds := a.takeAll(rs, "at first")
	holds[1].release()
	_, err := b.acquireAll(copiesOf(rs)) // by another client, so that it is the engine that knows
	tr.mustMatch(err, driver.ErrLost, "several requests of which one is released, asked again")
	b.findsFree(keys[1], "after it was asked for again with others")
	b.findsHeld(keys[0], "while it is held still")
	releaseAll([]*hold{holds[0], holds[2], holds[3]})
	_, err = a.acquireAll(copiesOf(rs))
	tr.mustMatch(err, driver.ErrLost, "several requests that are released, asked again")
	b.findsAllFree(keys, "in the end")
}

// Each request is undone by its own ID, and together they free everything.
func severalAfterLostReply(tr *trial) {
	a, b := tr.behind(faulty.Rule{Op: faulty.AcquireAll, Count: 1, Drop: faulty.Reply}), tr.client()
	keys := tr.several()
	rs := a.askAll(keys)
	_, err := a.acquireAll(rs)
	tr.mustMatch(err, driver.ErrUnavailable, "several requests that get no answer")
	for _, r := range rs {
		b.findsHeld(r.Key, "before it is undone")
		a.undo(r)
		b.findsFree(r.Key, "after it was undone")
	}
	_, err = a.acquireAll(copiesOf(rs))
	tr.mustMatch(err, driver.ErrLost, "several requests that were undone, asked again")
	b.findsAllFree(keys, "in the end")
}

// lateCopyOfSeveral undoes what never arrived: all of it, or one. Either must refuse the whole step, because the
// portable layer may have reached the engine with one undo only.
func lateCopyOfSeveral(tr *trial) {
	a, b := tr.client(), tr.client()
	keys := tr.several()
	for n := 1; n <= len(keys); n += len(keys) - 1 {
		rs := a.askAll(keys)
		for _, r := range rs[len(keys)-n:] {
			b.undo(r) // by another client, so that it is the engine that remembers
		}
		_, err := a.acquireAll(rs)
		tr.mustMatch(err, driver.ErrLost, fmt.Sprintf("several requests of which %d were undone before they came", n))
		b.findsAllFree(keys, "after requests that were undone")
	}
}

// The outcome is open, so undoing each must leave everything free.
func severalWithEndedContext(tr *trial) {
	a, b := tr.client(), tr.client()
	keys := tr.several()
	ctx, cancel := context.WithCancel(tr.Context())
	cancel()
	rs := a.askAll(keys)
	start := time.Now()
	_, err := a.d.(driver.MultiAcquirer).AcquireAll(ctx, rs)
	if err == nil {
		tr.Fatalf("several requests whose context had ended were granted")
	}
	if took := time.Since(start); took > prompt {
		tr.Fatalf("several requests whose context had ended have returned after %v", took)
	}
	for _, r := range rs {
		a.undo(r)
	}
	b.findsAllFree(keys, "after requests whose context had ended were undone")
}

// What cannot be served in one step must be refused as unsupported: then the portable layer takes them one by one.
func listsThatAreNone(tr *trial) {
	a, b := tr.client(), tr.client()
	keys := tr.several()
	twice := a.askAll([]driver.Key{keys[0], keys[1], keys[0]})
	sameID := a.askAll(keys[:2])
	sameID[1].ID = sameID[0].ID
	odd := a.askAll(keys[:2])
	odd[1].Kind = "drivertest"
	for what, rs := range map[string][]*driver.Request{
		"without a request": nil, "with a lock twice": twice, "with an ID twice": sameID,
		"with a kind that nobody knows": odd,
	} {
		_, err := a.acquireAll(rs)
		if !errors.Is(err, driver.ErrUnsupported) || !driver.IsDefinite(err) {
			tr.Fatalf("a list %s says %q, want a definite ErrUnsupported", what, text(err))
		}
		b.findsAllFree(keys, "after a list "+what)
	}
}

// Several locks in one step (driver.MultiAcquirer).

// several returns mutexes of this behaviour that engines with shards keep in one shard, as users ask for that: by a
// {tag} in the name.
func (tr *trial) several() (keys []driver.Key) {
	for _, suffix := range []string{"a", "b", "c", "d"} {
		keys = append(keys, driver.Key{Kind: driver.KindMutex, Name: "{" + tr.name + "}:" + suffix})
	}
	return keys
}

// askAll returns a request for each key.
func (c *client) askAll(keys []driver.Key) (rs []*driver.Request) {
	for _, key := range keys {
		rs = append(rs, c.ask(key))
	}
	return rs
}

// acquireAll asks for all in one step, and gives up after the harness's patience.
func (c *client) acquireAll(rs []*driver.Request) ([]*hold, error) {
	ctx, cancel := c.tr.bound()
	defer cancel()
	gs, err := c.d.(driver.MultiAcquirer).AcquireAll(ctx, rs)
	if err != nil {
		return nil, err
	}
	if len(gs) != len(rs) {
		return nil, fmt.Errorf("%d requests were answered with %d grants", len(rs), len(gs))
	}
	holds := make([]*hold, len(rs))
	for i := range rs {
		holds[i] = &hold{c: c, r: rs[i], g: gs[i], back: time.Now()}
	}
	return holds, nil
}

// takeAll is acquireAll, and fails if it is refused.
func (c *client) takeAll(rs []*driver.Request, when string) []*hold {
	c.tr.Helper()
	holds, err := c.acquireAll(rs)
	if err != nil {
		c.tr.Fatalf("%s: %d free locks must be granted in one step: %v", when, len(rs), err)
	}
	return holds
}

// releaseAll releases each hold.
func releaseAll(holds []*hold) {
	for _, h := range holds {
		h.release()
	}
}

// findsAllFree fails unless each key is free.
func (c *client) findsAllFree(keys []driver.Key, when string) {
	c.tr.Helper()
	for _, key := range keys {
		c.findsFree(key, when)
	}
}

// copiesOf returns the requests once more, as a retry sends them.
func copiesOf(rs []*driver.Request) (again []*driver.Request) {
	for _, r := range rs {
		again = append(again, copyOf(r))
	}
	return again
}

// isRefusedAll fails unless the step is refused because of that lock.
func (c *client) isRefusedAll(keys []driver.Key, because driver.Key, when string) {
	c.tr.Helper()
	holds, err := c.acquireAll(c.askAll(keys))
	if err == nil {
		for _, h := range holds {
			h.abandon()
		}
		c.tr.Fatalf("%s: %d locks were granted in one step, and must be refused", when, len(keys))
	}
	var held *driver.HeldError
	if !errors.As(err, &held) || !driver.IsDefinite(err) || held.Name != because.Name {
		c.tr.Fatalf("%s: it says %q, want a definite *HeldError for %q", when, err, because.Name)
	}
}
