package play

import (
	"context"
	"slices"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
)

// glance bounds a look at who holds the lock: a server that is away shows nobody.
const glance = time.Second

// looker returns the lab's own client of an engine, with which it looks at locks.
func (p *Play) looker(url string) *interlock.Client {
	p.Helper()
	if p.lookers[url] == nil {
		locks, err := interlock.Open(p.Context(), url, &interlock.Options{ClientName: "lab", CloseTimeout: glance})
		if err != nil {
			p.Fatal(err)
		}
		p.Cleanup(func() { _ = locks.Close() }) // it holds nothing
		p.lookers[url] = locks
	}
	return p.lookers[url]
}

// look returns what the engine says about a lock.
func (p *Play) look(locks *interlock.Client, name string) (driver.LockInfo, bool) {
	ctx, cancel := context.WithTimeout(p.Context(), glance)
	defer cancel()
	for info, err := range locks.List(ctx, name) {
		if err == nil && info.Name == name {
			return info, true
		}
	}
	return driver.LockInfo{}, false
}

// WatchNode has the picture show who holds an interlock lock as one Redis says, as long as that runs.
func (p *Play) WatchNode(label string, node *Redis, name string) {
	p.Helper()
	locks := p.looker(node.URL())
	p.Watch(label, func() string {
		if !node.Alive() {
			return ""
		}
		return p.holder(locks, name)
	})
}

// WatchLock has the picture show who holds an interlock lock, as its engine says.
func (p *Play) WatchLock(server, url, name string) {
	p.Helper()
	locks := p.looker(url)
	p.Watch(server, func() string { return p.holder(locks, name) })
}

// holder returns who holds a lock as its engine says, or "".
func (p *Play) holder(locks *interlock.Client, name string) string {
	info, ok := p.look(locks, name)
	if !ok || len(info.Holders) == 0 {
		return ""
	}
	if end := info.Holders[0].Until; !end.IsZero() {
		p.left.Store(max(time.Until(end).Milliseconds(), 1)) // the engine's clock is this machine's
	}
	return info.Holders[0].Client
}

// AwaitNoWaiters returns when nobody waits any more for the lock, which somebody holds.
func (p *Play) AwaitNoWaiters(url, name string) {
	p.Helper()
	locks := p.looker(url)
	if !p.until(func() bool {
		info, ok := p.look(locks, name)
		return ok && len(info.Waiters) == 0
	}) {
		p.Fatal("somebody waits still")
	}
}

// awaitQueued returns when the engine knows that a client wants the lock, or has it: who asks next comes after it.
func (p *Play) awaitQueued(url, name, client string) {
	p.Helper()
	locks := p.looker(url)
	if !p.until(func() bool {
		info, _ := p.look(locks, name)
		return slices.ContainsFunc(info.Waiters, func(w driver.Waiter) bool { return w.Client == client }) ||
			slices.ContainsFunc(info.Holders, func(h driver.Holder) bool { return h.Client == client })
	}) {
		p.Fatalf("%s never came into the queue", client)
	}
}
