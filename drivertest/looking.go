package drivertest

import (
	"fmt"
	"reflect"
	"time"

	"github.com/interlock-go/interlock/driver"
)

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
