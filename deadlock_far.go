package interlock

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Owners named by WithOwner that wait for each other by several clients, as the engine lists them. Only such owners are the
// same for everybody. A list is not a picture of one instant, so a cycle counts if two lists have it, with the same tokens and
// the same waits: between the two all of them stood still. Every client that has a part in it finds the same one to tell,
// and the client who waits there tells it.

const (
	// farFirst and farMost are the pauses between looks that found nothing: a list costs the engine more the more it holds.
	farFirst = time.Second
	farMost  = 30 * time.Second
	// farPatience bounds one list.
	farPatience = 10 * time.Second
)

// farSeeker is that search's part of a client. Guarded by Client.mu.
type farSeeker struct {
	at    instant // not before
	pause time.Duration
	busy  bool
	seen  []farKnot // what the last list had
}

// farKnot is one owner of a cycle as the engine lists it: what it waits for, since when, and who holds that.
type farKnot struct {
	owner  string
	key    driver.Key
	since  time.Time
	holder string
	token  uint64
}

// lookFar has the engine asked if it is time to. Somebody of this client waits who is named and holds something. The caller
// holds Client.mu.
func (f *farSeeker) look(c *Client, now instant, suspicious bool) {
	inspector, can := c.d.(driver.Inspector)
	_, blind := c.traits.Lacking(driver.Waiters)
	switch {
	case !suspicious:
		f.pause, f.seen = 0, nil
		return
	case !can || blind || f.busy:
		return
	case f.pause == 0:
		f.pause, f.at = farFirst, now.plus(farFirst-seekAfter)
		return
	case now < f.at:
		return
	}
	f.busy = true
	c.background.Go(func() { // ends when the engine has answered, or with c.base
		ctx, cancel := context.WithTimeout(c.base, farPatience)
		defer cancel()
		found, err := farCycle(ctx, inspector)
		c.lock()
		defer c.unlockHere()
		f.busy = false
		f.took(c, found, err)
	})
}

// took takes in what a list had. The caller holds Client.mu.
func (f *farSeeker) took(c *Client, found []farKnot, err error) {
	f.pause = min(2*f.pause, farMost)
	if err != nil || len(found) == 0 || !slices.Equal(found, f.seen) {
		if f.seen = found; len(found) > 0 {
			f.pause = farFirst // look again soon
		}
		f.at = c.reading().plus(f.pause)
		return
	}
	f.at, f.seen = c.reading().plus(f.pause), nil
	victim := slices.MaxFunc(found, func(a, b farKnot) int { return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.owner, b.owner)) })
	for w := range c.alone {
		if o := w.lease.owner; o.named && o.id == victim.owner && w.lease.m.key == victim.key && !w.own.r.Try {
			w.refuse(&deadlockError{key: victim.key, cycle: describeFar(found, victim)})
		}
	}
}

// farCycle returns named owners that wait for each other, from the one with the smallest name on, or nothing.
func farCycle(ctx context.Context, inspector driver.Inspector) ([]farKnot, error) {
	waits, free := make(map[string][]farKnot), make(map[string]bool)
	for info, err := range inspector.Locks(ctx, "") {
		if err != nil {
			return nil, err
		}
		for _, w := range info.Waiters {
			if !w.Named {
				continue
			}
			k := farKnot{owner: w.Owner, key: driver.Key{Kind: info.Kind, Name: info.Name}, since: w.Since}
			if info.Kind != driver.KindMutex || len(info.Holders) == 0 || !info.Holders[0].Named || info.Holders[0].Owner == w.Owner {
				free[w.Owner] = true
				continue
			}
			k.holder, k.token = info.Holders[0].Owner, info.Holders[0].Token
			waits[w.Owner] = append(waits[w.Owner], k)
		}
	}
	for more := true; more; { // as cycle does
		more = false
		for owner, all := range waits {
			if free[owner] || slices.ContainsFunc(all, func(k farKnot) bool { return waits[k.holder] == nil }) {
				delete(waits, owner)
				more = true
			}
		}
	}
	return follow(waits), nil
}

// follow goes from the smallest owner to whom it waits for, until somebody comes again.
func follow(waits map[string][]farKnot) []farKnot {
	if len(waits) == 0 {
		return nil
	}
	var path []farKnot
	at := ""
	for owner := range waits {
		if at == "" || owner < at {
			at = owner
		}
	}
	for {
		if from := slices.IndexFunc(path, func(k farKnot) bool { return k.owner == at }); from >= 0 {
			path = path[from:]
			break
		}
		k := slices.MinFunc(waits[at], func(a, b farKnot) int {
			return cmp.Or(cmp.Compare(a.key.Name, b.key.Name), a.since.Compare(b.since))
		})
		path = append(path, k)
		at = k.holder
	}
	first := slices.Index(path, slices.MinFunc(path, func(a, b farKnot) int { return cmp.Compare(a.owner, b.owner) }))
	return slices.Concat(path[first:], path[:first])
}

// describeFar tells the cycle from the victim on.
func describeFar(found []farKnot, victim farKnot) string {
	from := slices.Index(found, victim)
	text := "owner " + victim.owner + " "
	for i := range found {
		k := found[(from+i)%len(found)]
		if i > 0 {
			text += ", who "
		}
		text += waitsForText(k.key.Name, k.holder)
	}
	return text
}
