package drivertest

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// The promise of inspection: operators see who holds and who waits, and refusals name the holder.

func inspection() []behaviour {
	holders, waiters := needing(driver.Holders), needing(driver.Waiters)
	return append([]behaviour{
		{sentence: "a held lock is listed with its holder", run: heldLockIsListed, needs: holders},
		{sentence: "a refused try names the holder", run: refusalNamesTheHolder, needs: holders},
		{sentence: "those who wait are listed in their order", run: waitersAreListed, needs: waiters},
		{sentence: "a lock that is free again is not listed", run: freeLockIsNotListed, needs: holders},
		{sentence: "only locks with the prefix are listed, each once", run: prefixIsObeyed, needs: holders},
		{sentence: "a listing can be left early", run: listingCanBeLeftEarly, needs: holders},
		{
			sentence: "a named owner that is inside twice is listed until its last release",
			run:      ownerInsideTwiceIsListed,
			needs:    needing(driver.Holders, driver.NamedOwners),
		},
		{
			sentence: "it is listed which owners are named", run: namedOwnersAreMarked,
			needs: needing(driver.Holders, driver.Waiters, driver.NamedOwners),
		},
		{
			sentence: "a hold that was released but kept is listed as in its cooldown", run: keptHoldIsListedInCooldown,
			needs: holders, ends: on(driver.Leases),
		},
		{
			sentence: "a renewal refreshes what is shown", run: renewalRefreshesWhatIsShown,
			needs: holders, ends: on(driver.Leases),
		},
	}, looking()...)
}

// inspector returns the driver's Inspector, which it must have unless it lacks both Holders and Waiters.
func (c *client) inspector() driver.Inspector {
	c.tr.Helper()
	i, ok := c.d.(driver.Inspector)
	if !ok {
		c.tr.Fatalf("the driver has no Locks, and does not declare that it lacks %q and %q",
			driver.Holders, driver.Waiters)
	}
	return i
}

// lists reports whether the engine can list anything.
func (tr *trial) lists() bool {
	_, noHolders := tr.traits.Lacking(driver.Holders)
	_, noWaiters := tr.traits.Lacking(driver.Waiters)
	return !noHolders || !noWaiters
}

// list returns the locks whose names start with prefix.
func (c *client) list(prefix string) []driver.LockInfo {
	c.tr.Helper()
	inspector := c.inspector()
	ctx, cancel := c.tr.bound()
	defer cancel()
	var all []driver.LockInfo
	for info, err := range inspector.Locks(ctx, prefix) {
		c.tr.must(err, "Locks")
		all = append(all, info)
	}
	return all
}

// shows returns what is listed of one lock, and false if it is not listed.
func (c *client) shows(key driver.Key) (driver.LockInfo, bool) {
	c.tr.Helper()
	for _, info := range c.list(key.Name) {
		if info.Kind == key.Kind && info.Name == key.Name {
			return info, true
		}
	}
	return driver.LockInfo{}, false
}

// showsHolders returns the holders of a lock that must be listed with n of them.
func (c *client) showsHolders(key driver.Key, n int) []driver.Holder {
	c.tr.Helper()
	info, listed := c.shows(key)
	if !listed || len(info.Holders) != n {
		c.tr.Fatalf("%s %q with %d holds is listed (%v) as %+v", key.Kind, key.Name, n, listed, info)
	}
	return info.Holders
}

// wholeLabel is as long as a label may be that every engine shows whole, with a byte that ends a text in C, and a trace
// at its end, as packages for traces write it.
var wholeLabel = strings.Repeat("n", driver.MaxLabel-69) + "\x00 " +
	"traceparent=00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// Everything that operators see of a holder is compared with the request and the grant.
func heldLockIsListed(tr *trial) {
	a, b := tr.client(), tr.client()
	r := a.ask(tr.mutex())
	r.Label = wholeLabel
	before := time.Now()
	h := a.take(r)
	got := b.showsHolders(tr.mutex(), 1)[0]
	if got.Owner != r.Owner || got.Client != r.Client || got.Label != r.Label || got.Token != h.g.Token || got.Shared {
		tr.Errorf("the holder is listed as %+v, want owner %q, client %q, label %q, token %d, exclusive",
			got, r.Owner, r.Client, r.Label, h.g.Token)
	}
	// The engine's clock may be off, but hardly by days; that shows a wrong unit.
	if off := got.Since.Sub(before).Abs(); !got.Since.IsZero() && off > 48*time.Hour {
		tr.Errorf("the holder is listed since %v, which is %v off", got.Since, off)
	}
	if !got.Since.IsZero() && !got.Until.IsZero() && got.Until.Before(got.Since) {
		tr.Errorf("the holder is listed from %v until %v", got.Since, got.Until)
	}
	h.release()
}

// A HeldError is what a caller sees of the lock.
func refusalNamesTheHolder(tr *trial) {
	a, b := tr.client(), tr.client()
	h := a.take(a.ask(tr.mutex()))
	_, err := b.try(tr.mutex())
	var held *driver.HeldError
	switch {
	case !errors.As(err, &held):
		tr.Fatalf("a try of a held lock says %q, want a *HeldError", text(err))
	case held.Kind != driver.KindMutex || held.Name != tr.name || held.Client != h.r.Client || held.Token != h.g.Token:
		tr.Errorf("the refusal is %+v, want the lock %q, client %q and token %d", *held, tr.name, h.r.Client, h.g.Token)
	}
	h.release()
}

// Engines without an order may list them in any.
func waitersAreListed(tr *trial) {
	a, b, c := tr.client(), tr.client(), tr.client()
	h := a.take(a.ask(tr.mutex()))
	one, two := b.ask(tr.mutex()), c.ask(tr.mutex())
	one.Label, two.Label = "first\x00", "sec\x00ond"
	first, second := b.queue(one), c.queue(two)
	var info driver.LockInfo
	tr.until("both who wait are listed", func() error {
		info, _ = a.shows(tr.mutex())
		if len(info.Waiters) != 2 {
			return fmt.Errorf("the lock is listed as %+v", info)
		}
		return nil
	})
	_, unordered := tr.traits.Lacking(driver.Order)
	for i, want := range []*driver.Request{one, two} {
		got := info.Waiters[i]
		if unordered && got.Label != want.Label {
			got = info.Waiters[1-i]
		}
		if got.Owner != want.Owner || got.Client != want.Client || got.Label != want.Label {
			tr.Errorf("waiter %d is listed as %+v, want owner %q, client %q, label %q",
				i+1, got, want.Owner, want.Client, want.Label)
		}
		if got.Position != 0 && got.Position != i+1 && !unordered {
			tr.Errorf("waiter %d is listed at position %d", i+1, got.Position)
		}
	}
	h.release()
	tr.serveAll("after the release", first, second)
}

// A free lock costs nothing and shows nothing.
func freeLockIsNotListed(tr *trial) {
	a, b := tr.client(), tr.client()
	h := a.take(a.ask(tr.mutex()))
	b.showsHolders(tr.mutex(), 1)
	h.release()
	if info, listed := b.shows(tr.mutex()); listed {
		tr.Errorf("a lock that nobody holds or waits for is listed: %+v", info)
	}
}

// The names contain what a store may take for a pattern or a path.
func prefixIsObeyed(tr *trial) {
	a, b := tr.client(), tr.client()
	other := a.take(a.ask(driver.Key{Kind: driver.KindMutex, Name: "other-" + tr.name}))
	want := make(map[string]*hold)
	for _, suffix := range []string{"/a", "/b", "/b/c", "/*", "/锁"} {
		h := a.take(a.ask(tr.another(suffix)))
		want[h.r.Name] = h
	}
	seen := make(map[string]int)
	for _, info := range b.list(tr.name + "/") {
		seen[info.Name]++
		if want[info.Name] == nil {
			tr.Errorf("asked for the prefix %q, %q is listed", tr.name+"/", info.Name)
		}
	}
	for name, h := range want {
		if seen[name] != 1 {
			tr.Errorf("%q is listed %d times, want once", name, seen[name])
		}
		h.release()
	}
	other.release()
}

// The caller's loop ends after the first lock; nothing may be left running.
func listingCanBeLeftEarly(tr *trial) {
	a, b := tr.client(), tr.client()
	one, two := a.take(a.ask(tr.another("-1"))), a.take(a.ask(tr.another("-2")))
	ctx, cancel := tr.bound()
	defer cancel()
	for _, err := range b.inspector().Locks(ctx, tr.name) {
		tr.must(err, "Locks")
		break
	}
	one.release()
	two.release()
}

// Whether an owner is listed once or with each of its holds is left to the engine. Its last release must take it off
// the list.
func ownerInsideTwiceIsListed(tr *trial) {
	a, b := tr.client(), tr.client()
	first := a.take(a.asOwner("order-7", tr.mutex()))
	second := b.take(b.asOwner("order-7", tr.mutex()))
	info, listed := a.shows(tr.mutex())
	// An engine may list an owner once, or each of its holds.
	if n := len(info.Holders); !listed || n < 1 || n > 2 {
		tr.Fatalf("a lock that one owner has entered twice is listed (%v) as %+v", listed, info)
	}
	for _, got := range info.Holders {
		if got.Owner != "order-7" {
			tr.Errorf("a hold is listed as %+v, want owner order-7", got)
		}
	}
	first.abandon()
	second.abandon()
	if info, listed := b.shows(tr.mutex()); listed {
		tr.Errorf("after its last release the lock is listed: %+v", info)
	}
}

// After a local pass only a renewal can tell the engine who holds the lock.
func renewalRefreshesWhatIsShown(tr *trial) {
	a, b := tr.client(), tr.client()
	h := a.take(a.ask(tr.mutex()))
	tr.must(a.renewAs(driver.Renewal{
		Key: tr.mutex(), ID: h.r.ID, Lease: 2 * longLease, Owner: "the next owner", Label: "passed on",
	}), "renewal by the next owner")
	if got := b.showsHolders(tr.mutex(), 1)[0]; got.Owner != "the next owner" || got.Label != "passed on" {
		tr.Errorf("after the renewal the holder is listed as %+v, want the new owner and label", got)
	}
	h.release()
}

// namedOwnersAreMarked is what the search for deadlocks over several clients rests on.
func namedOwnersAreMarked(tr *trial) {
	a, b := tr.client(), tr.client()
	for _, named := range []bool{true, false} {
		ask := (*client).ask
		if named {
			ask = func(c *client, key driver.Key) *driver.Request { return c.asOwner("owner of "+c.name, key) }
		}
		h := a.take(ask(a, tr.mutex()))
		w := b.queue(ask(b, tr.mutex()))
		info, listed := b.shows(tr.mutex())
		if !listed || len(info.Holders) != 1 || len(info.Waiters) != 1 {
			tr.Fatalf("listed %v: %+v, want one holder and one who waits", listed, info)
		}
		if info.Holders[0].Named != named || info.Waiters[0].Named != named {
			tr.Fatalf("the holder is listed as named %v, who waits as named %v; want %v",
				info.Holders[0].Named, info.Waiters[0].Named, named)
		}
		h.release()
		w.granted("after the release").release()
	}
}

// rests fails unless the mutex is listed with one holder, which is in its cooldown or is not.
func (c *client) rests(want bool, when string) {
	c.tr.Helper()
	if h := c.showsHolders(c.tr.mutex(), 1)[0]; h.Cooldown != want {
		c.tr.Fatalf("%s the holder is listed as %+v, want Cooldown %v", when, h, want)
	}
}

// The hold is over, and only keeps others out.
func keptHoldIsListedInCooldown(tr *trial) {
	a, b := tr.client(), tr.client()
	h := a.take(a.ask(tr.mutex()))
	b.rests(false, "while it is held")
	ctx, cancel := tr.bound()
	defer cancel()
	tr.must(a.d.Release(ctx, &driver.Release{Key: tr.mutex(), ID: h.r.ID, Keep: longLease}), "release that keeps")
	b.rests(true, "after a release that keeps")
	a.undo(h.r)
	b.findsFree(tr.mutex(), "after the hold was undone")
}

// looking is the part of inspection that is about one lock.
func looking() []behaviour {
	return []behaviour{
		{
			sentence: "a look at one lock tells what the listing tells", run: lookTellsWhatTheListingTells,
			wants: looks, needs: needing(driver.Holders),
		},
		{
			sentence: "a look at a lock that nobody uses finds nobody, and is no error", run: lookAtAFreeLock,
			wants: looks, needs: needing(driver.Holders),
		},
		{
			sentence: "a look tells of no lock but the one it is about", run: lookIsAboutOneLock,
			wants: looks, needs: needing(driver.Holders),
		},
		{sentence: "a look at an unknown kind of lock is refused", run: lookAtAnUnknownKind, wants: looks},
	}
}

// look asks about one lock.
func (c *client) look(key driver.Key) (driver.LockInfo, error) {
	ctx, cancel := c.tr.bound()
	defer cancel()
	return driver.Look(ctx, c.d, key)
}

// sees is look, which must succeed.
func (c *client) sees(key driver.Key, when string) driver.LockInfo {
	c.tr.Helper()
	info, err := c.look(key)
	c.tr.must(err, when+": a look")
	if info.Kind != key.Kind || info.Name != key.Name {
		c.tr.Fatalf("%s: a look at %s %q tells of %s %q", when, key.Kind, key.Name, info.Kind, info.Name)
	}
	return info
}

// seesNobody fails if a look finds a holder or a waiter.
func (c *client) seesNobody(key driver.Key, when string) {
	c.tr.Helper()
	if info := c.sees(key, when); len(info.Holders)+len(info.Waiters) > 0 {
		c.tr.Fatalf("%s: a look at %s %q finds %+v", when, key.Kind, key.Name, info)
	}
}

// The two may read different parts of the store. Both are asked again until they agree, because something may change in
// between.
func lookTellsWhatTheListingTells(tr *trial) {
	a, b := tr.client(), tr.client()
	h := a.take(a.ask(tr.mutex()))
	w := b.queue(b.ask(tr.mutex()))
	tr.until("a look tells what the listing tells", func() error {
		listed, _ := a.shows(tr.mutex())
		seen := a.sees(tr.mutex(), "while somebody waits")
		for _, info := range []driver.LockInfo{listed, seen} {
			for i := range info.Waiters {
				info.Waiters[i].Since = time.Time{} // some servers tell how long a wait has lasted, not when it began
			}
		}
		if len(seen.Holders) != 1 || !reflect.DeepEqual(seen, listed) {
			return fmt.Errorf("it tells %+v, and the listing %+v", seen, listed)
		}
		return nil
	})
	h.release()
	w.granted("after the release").release()
	b.seesNobody(tr.mutex(), "in the end")
}

// A lock that nobody uses is no error.
func lookAtAFreeLock(tr *trial) {
	a, b := tr.client(), tr.client()
	b.seesNobody(tr.mutex(), "before anybody has used the lock")
	h := a.take(a.ask(tr.mutex()))
	h.release()
	b.seesNobody(tr.mutex(), "after the release")
}

// The other names begin alike, as they would for an engine that looks by prefix.
func lookIsAboutOneLock(tr *trial) {
	a, b := tr.client(), tr.client()
	longer, short := tr.another("-longer"), tr.mutex()
	h := a.take(a.ask(longer))
	b.seesNobody(short, "while one is held whose name only begins like it")
	h.release()
	h = a.take(a.ask(short))
	b.seesNobody(longer, "while one is held whose name is its beginning")
	for _, kind := range tr.h.Kinds {
		if kind != driver.KindMutex && kind != driver.KindLatch && kind != driver.KindCond {
			b.seesNobody(tr.key(kind), "while the mutex of the name is held")
		}
	}
	h.release()
}

func lookAtAnUnknownKind(tr *trial) {
	_, err := tr.client().look(tr.key("drivertest"))
	tr.mustMatch(err, driver.ErrUnsupported, "a look at a kind that nobody knows")
}
