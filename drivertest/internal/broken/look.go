package broken

import (
	"context"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/driver"
)

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
