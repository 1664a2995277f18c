package broken

import (
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Breaks, listings, looks at one lock, and watches.

// Break ends all holds of the owner with the token.
func (d *Driver) Break(ctx context.Context, key driver.Key, token uint64) error {
	if err := d.reach(ctx); err != nil {
		return err
	}
	broken, err := d.s.takeAway(key, token)
	if d.s.defect == BreakIsSilent {
		return err
	}
	for _, h := range broken {
		if h.r.Lost != nil {
			h.r.Lost(driver.LostBroken, nil)
		}
	}
	return err
}

// takeAway ends the holds that Break is about and returns them, for Break to tell without Store.mu.
func (s *Store) takeAway(key driver.Key, token uint64) (broken []*entry, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lock(key)
	s.evict(l)
	if len(l.holders) == 0 {
		return nil, driver.ErrNotHeld
	}
	i := slices.IndexFunc(l.holders, func(h *entry) bool {
		return token >= h.grant.Token && token < h.grant.Token+uint64(h.grant.Tokens) || s.defect == BreakIgnoresToken
	})
	if i < 0 {
		return nil, s.held(l, key)
	}
	target := l.holders[i]
	for _, h := range slices.Clone(l.holders) {
		if h == target || h.reenters(target) {
			if !h.kept {
				broken = append(broken, h)
			}
			if !s.delays(l, h, time.Now()) {
				s.end(l, h)
			}
		}
	}
	return broken, nil
}

// Locks lists what is held or waited for.
func (d *Driver) Locks(ctx context.Context, prefix string) iter.Seq2[driver.LockInfo, error] {
	return func(yield func(driver.LockInfo, error) bool) {
		if err := d.reach(ctx); err != nil {
			yield(driver.LockInfo{}, err)
			return
		}
		for _, info := range d.s.list(prefix) {
			if !yield(info, nil) {
				return
			}
		}
	}
}

// list returns what Locks yields.
func (s *Store) list(prefix string) []driver.LockInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []driver.LockInfo
	for _, l := range s.locks {
		s.evict(l)
		if !strings.HasPrefix(l.key.Name, prefix) && s.defect != PrefixIsIgnored {
			continue
		}
		if len(l.holders)+len(l.waiters) == 0 && s.defect != FreeStaysListed {
			continue
		}
		all = append(all, l.info(s.defect))
	}
	return all
}

// info is what a listing shows of a lock.
func (l *lock) info(defect Defect) driver.LockInfo {
	info := driver.LockInfo{Kind: l.key.Kind, Name: l.key.Name, Limit: l.limit}
	for _, h := range l.holders {
		info.Holders = append(info.Holders, driver.Holder{
			Owner: h.r.Owner, Client: h.r.Client, Label: h.r.Label, Token: h.grant.Token, Weight: h.r.Weight,
			Shared: h.r.Mode != driver.Exclusive, Since: h.since, Until: h.until, Named: h.r.Named,
			Cooldown: h.kept && (defect != RestIsShownAsHeld || h.r.LockDelay > 0),
			Retained: h.retained && defect != RetainedIsHeld,
		})
	}
	for i, w := range l.waiters {
		info.Waiters = append(info.Waiters, driver.Waiter{
			Owner: w.r.Owner, Client: w.r.Client, Label: w.r.Label, Weight: w.r.Weight,
			Shared: w.r.Mode != driver.Exclusive, Since: w.since, Position: i + 1, Named: w.r.Named,
		})
	}
	return info
}

var _ driver.Looker = (*Driver)(nil)

// Look tells about one lock.
func (d *Driver) Look(ctx context.Context, key driver.Key) (driver.LockInfo, error) {
	none := driver.LockInfo{Kind: key.Kind, Name: key.Name}
	if err := d.reach(ctx); err != nil {
		return none, err
	}
	if !slices.Contains(d.Traits().Kinds, key.Kind) || key.Kind == driver.KindLatch || key.Kind == driver.KindCond {
		return none, driver.ErrUnsupported
	}
	s := d.s
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lock(key)
	for _, other := range s.locks {
		if s.defect == LookFindsLonger && other.key.Kind == key.Kind && strings.HasPrefix(other.key.Name, key.Name) &&
			len(other.holders) > 0 {
			l = other
		}
	}
	s.evict(l)
	info := l.info(s.defect)
	info.Kind, info.Name = key.Kind, key.Name
	if s.defect == ValueOfTheFirst && key.Kind == driver.KindElection && l.value != "" && len(info.Holders) > 0 {
		info.Holders[0].Label = l.value
	}
	if len(l.holders)+len(l.waiters) == 0 || l.key.Kind != key.Kind {
		return none, nil
	}
	return info, nil
}

var _ driver.Watcher = (*Driver)(nil)

// watch is a Watch under way.
type watch struct {
	key  driver.Key
	news chan struct{} // has one place
}

// Watch tells of changes of the holders of key.
func (d *Driver) Watch(ctx context.Context, key driver.Key, changed func()) error {
	w := &watch{key: key, news: make(chan struct{}, 1)}
	w.news <- struct{}{}
	s := d.s
	s.mu.Lock()
	s.watches[w] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watches, w)
	}()
	for {
		select {
		case <-w.news:
			changed()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// tell tells who watches l.
func (s *Store) tell(l *lock) {
	if s.defect == WatchMissesEnds && len(l.holders) == 0 && l.key.Kind != driver.KindLatch {
		return
	}
	for w := range s.watches {
		if w.key != l.key {
			continue
		}
		select {
		case w.news <- struct{}{}:
		default:
		}
	}
}
