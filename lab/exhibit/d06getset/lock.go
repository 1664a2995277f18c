// Package d06getset is an exhibit, broken on purpose: the value is the instant at which the lock ends, by the clock of
// the client that took it, and whoever finds it over takes the lock with GETSET.
package d06getset

import (
	"context"
	"strconv"
	"time"

	"github.com/interlock-go/interlock/lab/exhibit"
)

// Lock is the key of one lock, seen by one client.
type Lock struct {
	Conn  exhibit.Conn
	Key   string
	Lease time.Duration
	Now   func() time.Time // the client's own clock

	mine string // what it wrote
}

// TryLock takes the lock if it is free or, by this client's clock, over.
func (l *Lock) TryLock(ctx context.Context) (bool, error) {
	got, found, err := l.first(ctx)
	if err != nil || got || !l.over(found) {
		return got, err
	}
	// Whoever gets back what it has seen was the first to replace it. The others have replaced the winner's value.
	old, _, err := exhibit.Text(l.Conn.Do(ctx, "GETSET", l.Key, l.mine))
	return err == nil && old == found, err
}

// TryLockByDel is what it replaces: two clients that both find the lock over both get it.
func (l *Lock) TryLockByDel(ctx context.Context) (bool, error) {
	got, found, err := l.first(ctx)
	if err != nil || got || !l.over(found) {
		return got, err
	}
	if _, err := l.Conn.Do(ctx, "DEL", l.Key); err != nil {
		return false, err
	}
	n, err := exhibit.Int(l.Conn.Do(ctx, "SETNX", l.Key, l.mine))
	return n == 1, err
}

// first tries to take a lock that is free, and returns what is there otherwise.
func (l *Lock) first(ctx context.Context) (got bool, found string, err error) {
	l.mine = strconv.FormatInt(l.Now().Add(l.Lease).UnixMilli(), 10)
	n, err := exhibit.Int(l.Conn.Do(ctx, "SETNX", l.Key, l.mine))
	if err != nil || n == 1 {
		return n == 1, "", err
	}
	found, _, err = exhibit.Text(l.Conn.Do(ctx, "GET", l.Key))
	return false, found, err
}

// over reports whether an instant of another client's clock has passed by this one's.
func (l *Lock) over(instant string) bool {
	ms, err := strconv.ParseInt(instant, 10, 64)
	return err == nil && ms < l.Now().UnixMilli()
}

// Unlock deletes the key if its value is what this client wrote, and reports whether it did.
func (l *Lock) Unlock(ctx context.Context) (bool, error) {
	found, _, err := exhibit.Text(l.Conn.Do(ctx, "GET", l.Key))
	if err != nil || found != l.mine {
		return false, err
	}
	n, err := exhibit.Int(l.Conn.Do(ctx, "DEL", l.Key))
	return n == 1, err
}
