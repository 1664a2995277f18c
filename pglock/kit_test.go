package pglock

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/jackc/pgx/v5/pgconn"
)

// patience bounds what must happen but may take its time.
const patience = 15 * time.Second

// admin is a connection of an operator.
type admin struct {
	t  testing.TB
	pg *pgconn.PgConn
}

func newAdmin(t testing.TB, n *servers.PostgresNode) *admin {
	t.Helper()
	pg, err := pgconn.ConnectConfig(t.Context(), configOf(t, n.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pg.Close(background) })
	return &admin{t, pg}
}

// query returns the rows of a statement as text.
func (a *admin) query(text string, args ...any) [][]string {
	a.t.Helper()
	results, err := a.pg.Exec(background, fmt.Sprintf(text, args...)).ReadAll()
	if err != nil {
		a.t.Fatalf("%s: %v", text, err)
	}
	var found [][]string
	for _, result := range results {
		for _, r := range result.Rows {
			var line []string
			for _, v := range r {
				line = append(line, string(v))
			}
			found = append(found, line)
		}
	}
	return found
}

// one is the only value of an answer.
func (a *admin) one(text string, args ...any) string {
	a.t.Helper()
	found := a.query(text, args...)
	if len(found) != 1 || len(found[0]) != 1 {
		a.t.Fatalf("%s: got %v, want one value", text, found)
	}
	return found[0][0]
}

// until asks again and again until there is no error.
func until(t testing.TB, within time.Duration, missing func() error) {
	t.Helper()
	for end := time.Now().Add(within); ; time.Sleep(5 * time.Millisecond) { // real: the server tells nobody
		err := missing()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("after %v: %v", within, err)
		}
	}
}

// want returns an error unless got is what it should be.
func want(got, want string) error {
	if got != want {
		return fmt.Errorf("got %s, want %s", got, want)
	}
	return nil
}

// tables makes the tests of one server strangers to each other.
var tables atomic.Int32

func ownTable() string { return fmt.Sprintf("locks_%d", tables.Add(1)) }

// client opens the library through a URL, with the session's timeout as its lease.
func client(t testing.TB, addr, query string, lease time.Duration) *interlock.Client {
	t.Helper()
	return observed(t, addr, query, lease, nil)
}

// observed is client with somebody who is told what happens.
func observed(t testing.TB, addr, query string, lease time.Duration, o *interlock.Observer) *interlock.Client {
	t.Helper()
	c, err := interlock.Open(t.Context(), "postgres://postgres@"+addr+"/postgres?sslmode=disable"+query,
		&interlock.Options{Lease: lease, CloseTimeout: time.Second, Observer: o})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func lock(t testing.TB, c *interlock.Client, name string) *interlock.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	l, err := c.Lock(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func unlock(t testing.TB, l *interlock.Lease) {
	t.Helper()
	if err := l.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// isLost waits until l says that it is lost, within the given time.
func isLost(t testing.TB, l *interlock.Lease, within time.Duration) *interlock.LostError {
	t.Helper()
	select {
	case <-l.Lost():
	case <-time.After(within):
		t.Fatalf("the hold was not told lost within %v", within)
	}
	var lost *interlock.LostError
	if !errors.As(l.Err(), &lost) {
		t.Fatalf("a lost hold says %v", l.Err())
	}
	return lost
}

// request is one for the driver.
func request(name, id string) *driver.Request {
	return &driver.Request{
		Key: driver.Key{Kind: driver.KindMutex, Name: name}, ID: id, Owner: "owner of " + id, Client: "test", Weight: 1,
		Tokens: 1, Lease: time.Minute,
	}
}

func acquire(t testing.TB, d *Driver, r *driver.Request) driver.Grant {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	g, err := d.Acquire(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func release(t testing.TB, d *Driver, r *driver.Request) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := d.Release(ctx, &driver.Release{Key: r.Key, ID: r.ID}); err != nil {
		t.Fatal(err)
	}
}

// prune has old rows removed now.
func prune(t testing.TB, d *Driver) {
	t.Helper()
	if _, err := ask(t.Context(), d, func(s *speaker) (bool, error) { s.Prune(); return true, nil }); err != nil {
		t.Fatal(err)
	}
}
