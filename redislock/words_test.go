package redislock

import (
	"fmt"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
)

// odd are characters at which some language splits words, or ends them, and at last all of them.
func odd() (each []string) {
	all := ""
	for _, r := range "\x00\x01\t\n\v\f\r\x1b\x1f \x7f\u0085\u00a0\u2028\u3000\ufeff\"\\{}:%*?[]^" {
		each = append(each, string(r))
		all += string(r)
	}
	return append(each, all)
}

// Names, owners, clients and labels are the user's: whatever is in them, a lock is granted, passed on to who waits,
// renewed, listed and released.
func TestWords_OfUsers_MayHaveAnyCharacter(t *testing.T) {
	server := servers.RedisServer(t, nil)
	a, b := open(t, soloOption(server.Addr()), nil), open(t, soloOption(server.Addr()), nil)
	for i, c := range odd() {
		word := func(what string) string { return what + c + what + " 1 2" + c }
		made := func(who string) *driver.Request {
			r := lockRequest(fmt.Sprintf("%s-%d", who, i), word("name"))
			r.Owner, r.Named, r.Client, r.Label = word(who), true, word("client"), word("label")
			return r
		}
		first, second := made("first"), made("second")
		must := func(what string, err error) {
			t.Helper()
			if err != nil {
				t.Fatalf("%q: %s: %v", c, what, err)
			}
		}
		_, err := a.Acquire(t.Context(), first)
		must("acquire", err)
		must("renew a thin lock", renewOnce(t, a, first))
		queued, granted := make(chan struct{}, 1), make(chan error, 1)
		second.Waiting = func(*driver.HeldError) {
			select {
			case queued <- struct{}{}:
			default:
			}
		}
		go func() { // ends with the grant, or with the test
			_, err := b.Acquire(t.Context(), second)
			granted <- err
		}()
		select {
		case <-queued:
		case err := <-granted:
			t.Fatalf("%q: the second has not waited: %v", c, err)
		}
		must("renew a lock with a queue", renewOnce(t, a, first))
		must("release", a.Release(t.Context(), &driver.Release{Key: first.Key, ID: first.ID}))
		must("wait", <-granted)
		must("renew what was passed on", renewOnce(t, b, second))
		listed := false
		for info, err := range a.Locks(t.Context(), word("name")) {
			must("list", err)
			h := info.Holders[0]
			listed = info.Name == second.Name && h.Owner == second.Owner && h.Client == second.Client &&
				h.Label == second.Label
		}
		if !listed {
			t.Errorf("%q: the holder is not listed as it is", c)
		}
		must("release at last", b.Release(t.Context(), &driver.Release{Key: second.Key, ID: second.ID}))
	}
}

func renewOnce(t *testing.T, d *Driver, r *driver.Request) (result error) {
	d.Renew(t.Context(), []driver.Renewal{{Key: r.Key, ID: r.ID, Lease: time.Minute, Owner: r.Owner, Label: r.Label}},
		func(_ int, err error) { result = err })
	return result
}

// A prefix and an ID are words of texts that scripts keep: what would split them is refused before anything is sent.
func TestWords_OfPrefixesAndIDs_AreOneWordOrRefused(t *testing.T) {
	server := servers.RedisServer(t, nil)
	for _, c := range "\x00\x01\t\n\v\f\r\x1b \x7f" {
		if _, err := (&Options{Prefix: "a" + string(c) + "b:"}).withDefaults(); err == nil {
			t.Errorf("the prefix with %q is accepted", c)
		}
		if err := check(lockRequest("a"+string(c)+"b", "x")); err == nil {
			t.Errorf("the ID with %q is accepted", c)
		}
	}
	// white space for others, not for Lua
	d := open(t, soloOption(server.Addr()), &Options{Prefix: "a\u0085\u00a0\u3000ü/锁:"})
	r := lockRequest("id", "x")
	if _, err := d.Acquire(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if err := renewOnce(t, d, r); err != nil {
		t.Errorf("a hold under a prefix that is accepted is not renewed: %v", err)
	}
}
