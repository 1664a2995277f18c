// Package certlock keeps the locks of CertMagic, and so of Caddy, which a fleet of servers needs so that one
// of them obtains a certificate. A [Locker] has the methods of certmagic.Locker, certmagic.TryLocker and
// certmagic.LockLeaseRenewer; it needs the standard library only. A storage is made of it and of anything
// that keeps the certificates:
//
//	type files struct{ certmagic.Storage } // keeps the certificates; its own locks are not used
//
//	type storage struct {
//		files
//		*certlock.Locker // its methods are nearer than those of files
//	}
//
//	certmagic.Default.Storage = storage{files{&certmagic.FileStorage{Path: path}}, certlock.New(locks, "")}
//
// Locks are renewed in the background, so RenewLockLease has little to do. CertMagic has no way to hear that a lock was
// lost: Unlock says it when it is too late. Its own design allows for that, since obtaining a certificate twice does no
// harm but for rate limits.
package certlock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/interlock-go/interlock"
)

// Locker holds locks by name between two calls. It is safe for concurrent use. Goroutines of one process exclude each
// other like those of different ones. All servers of a fleet need the same prefix.
type Locker struct {
	c      *interlock.Client
	prefix string

	mu sync.Mutex // guards held; no engine is called under it

	// held has the leases of each lock, oldest first. All but the last were lost, and their holders have not come to
	// unlock them yet. An Unlock has only the name, so it is taken for the oldest one's: the last is never ended too
	// early, and at the latest with the last Unlock.
	held map[string][]*interlock.Lease
}

// DefaultPrefix begins the names of the locks.
const DefaultPrefix = "certmagic:"

// New returns a Locker whose locks are named prefix and the name that CertMagic gives. The prefix "" is
// [DefaultPrefix]. A name and its prefix have at most 512 bytes. The client is the caller's to close, after CertMagic
// has ended; a nil one panics.
func New(c *interlock.Client, prefix string) *Locker {
	if c == nil {
		panic("certlock: New needs a client")
	}
	if prefix == "" {
		prefix = DefaultPrefix
	}
	return &Locker{c: c, prefix: prefix, held: make(map[string][]*interlock.Lease)}
}

// Lock waits until the lock is held. ctx bounds the waiting and nothing else. Its errors are those
// of interlock.Mutex.Lock.
func (l *Locker) Lock(ctx context.Context, name string) error {
	lease, err := l.c.Lock(ctx, l.prefix+name)
	if err != nil {
		return err
	}
	return l.keep(ctx, name, lease)
}

// TryLock is Lock without waiting: false and no error if another holds the lock.
func (l *Locker) TryLock(ctx context.Context, name string) (bool, error) {
	lease, err := l.c.TryLock(ctx, l.prefix+name)
	switch {
	case errors.Is(err, interlock.ErrHeld) && !errors.Is(err, interlock.ErrUnavailable):
		return false, nil
	case err != nil:
		return false, err
	}
	if err := l.keep(ctx, name, lease); err != nil {
		return false, err
	}
	return true, nil
}

// keep notes a lease for its Unlock, and refuses one that the caller's own owner has already:
// its Unlock would end both.
func (l *Locker) keep(ctx context.Context, name string, lease *interlock.Lease) error {
	l.mu.Lock()
	leases := l.held[name]
	nested := len(leases) > 0 && leases[len(leases)-1].Token() == lease.Token()
	if !nested {
		l.held[name] = append(leases, lease)
	}
	l.mu.Unlock()
	if nested {
		err := fmt.Errorf("certlock: lock %q: this owner holds it already: %w", name, interlock.ErrDeadlock)
		return errors.Join(err, lease.Unlock(ctx))
	}
	return nil
}

// Unlock releases the lock. It says *interlock.LostError if the lock had been lost, and interlock.ErrNotHeld
// if it was not held. ctx bounds the wait for the engine's word; the release itself goes on in the
// background until it is confirmed.
func (l *Locker) Unlock(ctx context.Context, name string) error {
	lease, err := l.take(name)
	if err != nil {
		return err
	}
	return lease.Unlock(ctx)
}

// take removes the oldest lease of a lock and returns it.
func (l *Locker) take(name string) (*interlock.Lease, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	leases := l.held[name]
	switch len(leases) {
	case 0:
		return nil, fmt.Errorf("certlock: unlock %q: %w", name, interlock.ErrNotHeld)
	case 1:
		delete(l.held, name)
	default:
		l.held[name] = leases[1:]
	}
	return leases[0], nil
}

// RenewLockLease makes sure that the lock is held for at least d from now, and says how it was lost if it was. Without
// it the lock is renewed too, for as long as the process lives.
func (l *Locker) RenewLockLease(ctx context.Context, name string, d time.Duration) error {
	l.mu.Lock()
	leases := l.held[name]
	l.mu.Unlock()
	if len(leases) == 0 {
		return fmt.Errorf("certlock: renew %q: %w", name, interlock.ErrNotHeld)
	}
	return leases[len(leases)-1].Extend(ctx, d)
}
