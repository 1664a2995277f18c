// Package d04getdel is an exhibit, broken on purpose: the value names the owner, and the client compares it before it
// deletes the key. The lease can end between the two. The scripts that two articles print as the repair fail at run
// time.
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

// Compile has the server compile a script without running it, and returns the script's name.
func (l *Lock) Compile(ctx context.Context, script string) (string, error) {
	sha, _, err := exhibit.Text(l.Conn.Do(ctx, "SCRIPT", "LOAD", script))
	return sha, err
}

// UnlockBy releases by a script, and returns the server's answer.
func (l *Lock) UnlockBy(ctx context.Context, script, owner string) (any, error) {
	return l.Conn.Do(ctx, "EVAL", script, "1", l.Key, owner)
}
