package waitgraph

import (
	"context"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Whether a list is worth its price. A list costs the engine as much as it has keys, so it is asked for only after
// looks at the few locks around a waiter. They show whether it can be part of a cycle at all, and whether it could be
// the one that is told.

// Waiting is a named owner of this process that waits, with the locks that it has here.
type Waiting struct {
	Owner        string
	Waits, Holds []driver.Key
}

// Suspicion is what the locks around waiters say of a deadlock.
type Suspicion struct {
	// Likely: a named owner waits for what the waiter has, and came no later than the waiter itself. Every cycle over
	// holds of this process has a waiter of which that is true: the last to come, which is told.
	Likely bool
	// Possible: everything that the waiter waits for is in the hands of named owners. Then it is in a cycle if it has
	// something in another process, which these looks cannot see.
	Possible bool
	// Of is how many named owners wait in the shortest of its lines, and Place which of them it is, from 0 on.
	Of, Place int
}

// MostLooks bounds the looks for one suspicion. With more locks around it than that a list costs less.
const MostLooks = 64

// MostOwners bounds the owners of one process that it is about, for the same reason.
const MostOwners = 256

// Suspect looks at the locks around each of all, and returns what is most suspicious. It blocks for one look after the
// other.
func Suspect(
	ctx context.Context, look func(context.Context, driver.Key) (driver.LockInfo, error), all []Waiting,
) (most Suspicion, err error) {
	if len(all) > MostOwners {
		return Suspicion{Likely: true}, nil
	}
	v := vicinity{look: look, seen: make(map[driver.Key]driver.LockInfo)}
	for _, w := range all {
		s, err := v.suspect(ctx, w)
		switch {
		case err != nil:
			return Suspicion{}, err
		case s.Likely:
			return s, nil
		case s.Possible && (!most.Possible || s.Of < most.Of):
			most = s
		}
	}
	return most, nil
}

// vicinity is the locks that have been looked at.
type vicinity struct {
	look func(context.Context, driver.Key) (driver.LockInfo, error)
	seen map[driver.Key]driver.LockInfo
}

// at returns the lock of that key. It reports false if there have been too many looks.
func (v *vicinity) at(ctx context.Context, key driver.Key) (info driver.LockInfo, within bool, err error) {
	if info, was := v.seen[key]; was {
		return info, true, nil
	}
	if len(v.seen) == MostLooks {
		return driver.LockInfo{}, false, nil
	}
	if info, err = v.look(ctx, key); err != nil {
		return driver.LockInfo{}, true, err
	}
	v.seen[key] = info
	return info, true, nil
}

// suspect is Suspect for one owner. A wait that is not in the hands of named owners may end well, so its owner is in no
// deadlock, whatever else it waits for.
func (v *vicinity) suspect(ctx context.Context, w Waiting) (Suspicion, error) {
	s := Suspicion{Possible: true}
	var since time.Time // of the last of its waits
	var behind []driver.Waiter
	for _, key := range w.Waits {
		info, within, err := v.at(ctx, key)
		if err != nil || !within {
			return Suspicion{Likely: !within}, err
		}
		at := slices.IndexFunc(info.Waiters, func(o driver.Waiter) bool { return o.Named && o.Owner == w.Owner })
		if at < 0 || !blocked(&info, at) {
			return Suspicion{}, nil
		}
		if own := info.Waiters[at].Since; own.After(since) {
			since = own
		}
		place, of := line(info.Waiters, at)
		if s.Of == 0 || of < s.Of {
			s.Place, s.Of = place, of
		}
		if key.Kind != driver.KindMutex { // who stands behind it does not overtake it
			behind = append(behind, info.Waiters[at+1:]...)
		}
	}
	for _, key := range w.Holds {
		info, within, err := v.at(ctx, key)
		if err != nil || !within {
			return Suspicion{Likely: !within}, err
		}
		behind = append(behind, info.Waiters...)
	}
	s.Likely = slices.ContainsFunc(behind, func(o driver.Waiter) bool {
		return o.Named && o.Owner != w.Owner && (o.Since.IsZero() || !o.Since.After(since))
	})
	return s, nil
}

// blocked reports whether a named owner may be in the way of the waiter at place at of info.
func blocked(info *driver.LockInfo, at int) bool {
	own := info.Waiters[at].Owner
	return slices.ContainsFunc(info.Holders, func(h driver.Holder) bool {
		return h.Named && !h.Cooldown && h.Owner != own
	}) || info.Kind != driver.KindMutex && slices.ContainsFunc(info.Waiters[:at], func(o driver.Waiter) bool {
		return o.Named && o.Owner != own
	})
}

// line returns which of the named waiters the one at place at is, and how many there are.
func line(waiters []driver.Waiter, at int) (place, of int) {
	for i, w := range waiters {
		if w.Named {
			of++
			if i < at {
				place++
			}
		}
	}
	return place, of
}
