// Package d13tx is an exhibit, broken on purpose: a lock around a database transaction, released too early, by the
// function that took it, or only after a commit, which a transaction that is rolled back never reaches.
package d13tx

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/interlock-go/interlock/lab/exhibit"
)

// lease is that of the lock. While the process lives, its watchdog renews it (see [Lock.Renew]).
const lease = 30 * time.Second

// Lock is a lock in Redis whose scripts are sound: all that is wrong here is when it is released.
type Lock struct {
	Conn  exhibit.Conn
	Key   string
	Owner string
}

// TryLock takes the lock if it is free.
func (l *Lock) TryLock(ctx context.Context) (bool, error) {
	return exhibit.OK(l.Conn.Do(ctx, "SET", l.Key, l.Owner, "NX", "PX", milliseconds()))
}

const (
	release = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) else return 0 end`
	renew   = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end`
)

// Unlock releases the lock if it is the owner's.
func (l *Lock) Unlock(ctx context.Context) error {
	_, err := l.Conn.Do(ctx, "EVAL", release, "1", l.Key, l.Owner)
	return err
}

// Renew is one turn of the watchdog, which goes on until Unlock is called. It reports whether the lock was renewed.
func (l *Lock) Renew(ctx context.Context) (bool, error) {
	reply, err := l.Conn.Do(ctx, "EVAL", renew, "1", l.Key, l.Owner, milliseconds())
	return reply != nil, err
}

func milliseconds() string { return strconv.FormatInt(lease.Milliseconds(), 10) }

// Tx is a transaction of a framework: it begins before the function that does the work, and ends after it.
type Tx struct {
	DB exhibit.SQL // one connection

	afterCommit []func(ctx context.Context) error
}

// Begin begins the transaction.
func (t *Tx) Begin(ctx context.Context) error {
	_, err := t.DB.Exec(ctx, "START TRANSACTION")
	return err
}

// Commit commits, and then calls what is registered for it.
func (t *Tx) Commit(ctx context.Context) error {
	_, err := t.DB.Exec(ctx, "COMMIT")
	for _, f := range t.afterCommit {
		if err == nil {
			err = f(ctx)
		}
	}
	return err
}

// Rollback rolls back. What is registered for the commit is not called: there was none.
func (t *Tx) Rollback(ctx context.Context) error {
	_, err := t.DB.Exec(ctx, "ROLLBACK")
	return err
}

// ErrHeld says that another has the lock.
var ErrHeld = errors.New("the lock is held")

// Register adds a user unless the name is there, under the lock, and releases it when it returns. The transaction is
// the caller's, and still open then.
func Register(ctx context.Context, tx *Tx, l *Lock, name string) (err error) {
	if err := l.take(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Unlock(ctx)) }()
	return add(ctx, tx, name)
}

// RegisterAfterCommit does the same and has the lock released after the commit.
func RegisterAfterCommit(ctx context.Context, tx *Tx, l *Lock, name string) error {
	if err := l.take(ctx); err != nil {
		return err
	}
	tx.afterCommit = append(tx.afterCommit, l.Unlock)
	return add(ctx, tx, name)
}

func (l *Lock) take(ctx context.Context) error {
	got, err := l.TryLock(ctx)
	if err == nil && !got {
		err = ErrHeld
	}
	return err
}

// add is the check and the insert.
func add(ctx context.Context, tx *Tx, name string) error {
	there, err := tx.DB.Number(ctx, "SELECT COUNT(*) FROM users WHERE name = ?", name)
	if err != nil || there > 0 {
		return err
	}
	_, err = tx.DB.Exec(ctx, "INSERT INTO users VALUES (?)", name)
	return err
}
