package broken

import (
	"context"

	"github.com/interlock-go/interlock/driver"
)

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
