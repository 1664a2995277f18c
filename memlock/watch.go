package memlock

import (
	"context"

	"github.com/interlock-go/interlock/driver"
)

// Watches: hints that the holders of a lock or a latch have changed (driver.Watcher).

var _ driver.Watcher = (*Driver)(nil)

// watch is one Watch under way.
type watch struct {
	from   *Driver
	key    driver.Key
	news   chan struct{} // has one place, which the store fills under its mutex: changes that come together count once
	closed chan struct{} // closed when its driver is
}

// Watch calls changed for each change, or once for several that come together, in its own goroutine. The first call
// says that the watch has begun, so that no change falls in between. It returns when ctx ends or d is closed.
func (d *Driver) Watch(ctx context.Context, key driver.Key, changed func()) error {
	w := &watch{from: d, key: key, news: make(chan struct{}, 1), closed: make(chan struct{})}
	w.news <- struct{}{} // it has begun
	if err := d.store.watch(w); err != nil {
		return err
	}
	defer d.store.unwatch(w)
	for {
		select {
		case <-w.news:
			changed()
		case <-w.closed:
			return driver.ErrClosed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// watch begins w.
func (s *store) watch(w *watch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.from.closed {
		return driver.ErrClosed
	}
	s.watches[w] = struct{}{}
	s.q.watched[w.key]++
	return nil
}

// unwatch ends w.
func (s *store) unwatch(w *watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(w)
}

// forget takes w out, if it is still there. The caller holds mu.
func (s *store) forget(w *watch) {
	if _, there := s.watches[w]; !there {
		return
	}
	delete(s.watches, w)
	if s.q.watched[w.key]--; s.q.watched[w.key] == 0 {
		delete(s.q.watched, w.key)
	}
}

// closeWatches ends the watches of d. The caller holds mu.
func (s *store) closeWatches(d *Driver) {
	for w := range s.watches {
		if w.from == d {
			s.forget(w)
			close(w.closed)
		}
	}
}

// tellWatches passes on what has changed in the step. The caller holds mu.
func (s *store) tellWatches() {
	if len(s.q.changed) == 0 {
		return
	}
	for w := range s.watches {
		if _, is := s.q.changed[w.key]; !is {
			continue
		}
		select {
		case w.news <- struct{}{}:
		default: // it has not taken the last news yet, and looks after these
		}
	}
	clear(s.q.changed)
}
