package memlock

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
)

// What operators see and do: list, break, diagnose. look.go describes one lock.

var (
	_ driver.Inspector = (*Driver)(nil)
	_ driver.Breaker   = (*Driver)(nil)
	_ driver.Diagnoser = (*Driver)(nil)
)

// Locks yields the locks whose names start with prefix, by name and kind. Each is read in a step of its own, so it is
// consistent in itself. No mutex is held while the loop runs, so it may take as long as it likes.
func (d *Driver) Locks(ctx context.Context, prefix string) iter.Seq2[driver.LockInfo, error] {
	return func(yield func(driver.LockInfo, error) bool) {
		keys, err := d.keys(prefix)
		if err != nil {
			yield(driver.LockInfo{}, err)
			return
		}
		for _, key := range keys {
			info, inUse, err := d.look(ctx, key)
			if err != nil {
				yield(driver.LockInfo{}, err)
				return
			}
			if inUse && !yield(info, nil) {
				return
			}
		}
	}
}

// Break ends all holds of the owner whose tokens contain token, lets the next waiters in, and then tells the holders,
// in this goroutine and without the store's mutex.
func (d *Driver) Break(_ context.Context, key driver.Key, token uint64) error {
	var broken []func(driver.LostReason, error)
	err := d.do(func(now time.Time, q *state) error {
		var err error
		broken, err = q.breakHolds(now, key, token)
		return err
	})
	for _, lost := range broken {
		lost(driver.LostBroken, nil)
	}
	return err
}

// checksPage is the heading that explains the check.
const checksPage = "docs/doctor.md#findings-on-memory"

// Diagnose finds nothing wrong: there is no server.
func (d *Driver) Diagnose(context.Context) []driver.Finding {
	var in int
	err := d.do(func(now time.Time, q *state) error {
		q.advance(now)
		in = len(q.locks)
		return nil
	})
	f := enginekit.Fine("store", "in this process's memory, %d in use; other processes do not see it", in)
	if err != nil {
		f = enginekit.Fail("store", "open another client", "%v", err)
	}
	return enginekit.Explained(checksPage, []driver.Finding{f})
}

// keys lists the locks in use, in an order that is the same for every call.
func (d *Driver) keys(prefix string) ([]driver.Key, error) {
	var keys []driver.Key
	err := d.do(func(now time.Time, q *state) error {
		q.advance(now)
		for key := range q.locks {
			if strings.HasPrefix(key.Name, prefix) {
				keys = append(keys, key)
			}
		}
		return nil
	})
	slices.SortFunc(keys, func(a, b driver.Key) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
	})
	return keys, err
}

// look describes one lock, if it is still in use.
func (d *Driver) look(ctx context.Context, key driver.Key) (info driver.LockInfo, inUse bool, err error) {
	if err := ctx.Err(); err != nil {
		return driver.LockInfo{}, false, err
	}
	err = d.do(func(now time.Time, q *state) error {
		q.advance(now)
		l := q.locks[key]
		if l == nil {
			return nil
		}
		info, inUse = l.info(), true
		return nil
	})
	return info, inUse, err
}
