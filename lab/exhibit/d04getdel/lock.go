// Package d04getdel is an exhibit, broken on purpose: the value names the owner, and the client compares it before it
// deletes the key. Between the two anything can happen. The articles' first scripts that were to mend it do not run.
package d04getdel

import (
	"context"
	"strconv"

	"github.com/interlock-go/interlock/lab/exhibit"
)

// Lock is the key of one lock, seen by one client.
type Lock struct {
	Conn exhibit.Conn
	Key  string
}

// TryLock takes the lock for that many seconds in the name of owner.
func (l *Lock) TryLock(ctx context.Context, owner string, seconds int) (bool, error) {
	return exhibit.OK(l.Conn.Do(ctx, "SET", l.Key, owner, "NX", "EX", strconv.Itoa(seconds)))
}

// Unlock deletes the key if the owner has it: as of a moment ago.
func (l *Lock) Unlock(ctx context.Context, owner string) error {
	value, _, err := exhibit.Text(l.Conn.Do(ctx, "GET", l.Key))
	if err != nil || value != owner {
		return err
	}
	_, err = l.Conn.Do(ctx, "DEL", l.Key)
	return err
}

// The scripts with the two mistakes of the articles.
const (
	// Misplaced has a parenthesis too many, and a key that is a text.
	Misplaced = `if redis.call('get', "KEYS1") == ARGV[1]) then return redis.call('del', "KEYS1") else return 0 end`

	// Misspelt uses KEY where Redis has KEYS.
	Misspelt = `if redis.call('get', KEY[1]) == ARGV[1] then return redis.call('del', KEY[1]) else return 0 end`
)

// UnlockBy releases by one of these scripts.
func (l *Lock) UnlockBy(ctx context.Context, script, owner string) error {
	_, err := l.Conn.Do(ctx, "EVAL", script, "1", l.Key, owner)
	return err
}
