package redislock

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/pace"
	"github.com/interlock-go/interlock/internal/servers"
)

// A lock of a later format must be left alone by everything that a driver does.
func TestALockOfALaterFormat_IsRefusedAsAConflictAndNotChanged(t *testing.T) {
	s := servers.RedisServer(t, nil)
	d := open(t, soloOption(s.Addr()), nil)
	thin := "2 " + strings.Repeat("x ", 11) + `{"o":"later"}`
	for name, command := range map[string][]string{
		"thin":  {"SET", "KEY", thin},
		"short": {"SET", "KEY", "2 x"},
		"hash":  {"HSET", "KEY", "v", "3", "h", "P2 later", "a", "0", "z", "5", "q:0", "P2 waiter", "k", "0"},
	} {
		t.Run(name, func(t *testing.T) {
			r := lockRequest("mine", name)
			key, slot := d.names.lock(r.Key)
			do := func(args ...string) string {
				t.Helper()
				for i := range args {
					args[i] = strings.Replace(args[i], "KEY", key, 1)
				}
				answer, err := s.Do(t.Context(), args...)
				if err != nil {
					t.Fatalf("%v: %v", args, err)
				}
				return fmt.Sprint(answer)
			}
			do(command...)
			do("PEXPIRE", "KEY", "900000")
			before := do("DUMP", "KEY")
			try, named := lockRequest("try", name), lockRequest("named", name)
			try.Try, named.Named = true, true
			release := &driver.Release{Key: r.Key, ID: r.ID}
			var listed error
			for what, run := range map[string]func() error{
				"Acquire": func() error { _, err := d.Acquire(t.Context(), r); return err },
				"a try":   func() error { _, err := d.Acquire(t.Context(), try); return err },
				"a named": func() error { _, err := d.Acquire(t.Context(), named); return err },
				"Requeue": func() error {
					_, err := d.Requeue(t.Context(), &driver.Release{Key: r.Key, ID: "given"},
						lockRequest("next", name))
					return err
				},
				"Renew":   func() error { return lengthen(t.Context(), d, r, time.Hour) },
				"Release": func() error { return d.Release(t.Context(), release) },
				"keep": func() error {
					return d.Release(t.Context(), &driver.Release{Key: r.Key, ID: r.ID, Keep: time.Second})
				},
				"undo": func() error {
					return d.Release(t.Context(),
						&driver.Release{Key: r.Key, ID: r.ID, Undo: true, Horizon: time.Second})
				},
				"Break":      func() error { return d.Break(t.Context(), r.Key, 1) },
				"inspection": func() error { return listed },
			} {
				for info, err := range d.Locks(t.Context(), name) {
					if err != nil || !strings.Contains(info.Unreadable, "later version") || info.Name != name {
						t.Errorf("it is listed as %+v, %v", info, err)
					}
					_, listed = d.Look(t.Context(), r.Key)
				}
				err := run()
				if !errors.Is(err, driver.ErrConflict) || errors.Is(err, driver.ErrLost) ||
					!strings.Contains(err.Error(), "later version of interlock") {
					t.Errorf("%s: %v, want an error that matches ErrConflict and says why", what, err)
				}
				if definite := driver.IsDefinite(err); !definite {
					t.Errorf("%s: the refusal is not definite: %v", what, err)
				}
			}
			if after := do("DUMP", "KEY"); after != before {
				t.Errorf("the lock was changed to %q", after)
			}
			if left := do("PTTL", "KEY"); len(left) != 6 || left < "8" {
				t.Errorf("it lasts %s ms, want nearly 900000", left)
			}
			if floor := do("EXISTS", d.names.floor(slot)); floor != "0" {
				t.Errorf("a token was minted")
			}
		})
	}
}

// What another program has written by wire.md is a lock for everybody.
func TestALockThatAnotherProgramHasTaken_IsHeldAndEndsWithItsTimeToLive(t *testing.T) {
	s := servers.RedisServer(t, nil)
	d := open(t, soloOption(s.Addr()), nil)
	r := lockRequest("mine", "shared with others")
	key, slot := d.names.lock(r.Key)
	text := `1 its-id 1700000000000000 1700000000000000 2 p 300 750 300 8 app:push:other ` +
		`{"o":"it","c":"other program","l":"a label"}`
	const lasts = 2 * time.Second
	began := time.Now()
	if _, err := s.Do(t.Context(), "SET", key, text, "PX", inMillis(lasts), "NX"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Do(t.Context(), "SET", d.names.floor(slot), "1700000000000007"); err != nil {
		t.Fatal(err)
	}
	for info, err := range d.Locks(t.Context(), r.Name) {
		if err != nil || len(info.Holders) != 1 {
			t.Fatalf("listed as %+v, %v", info, err)
		}
		h := info.Holders[0]
		if h.Owner != "it" || h.Client != "other program" || h.Label != "a label" || h.Token != 1700000000000000 ||
			h.Since.UnixMicro() != 1700000000000000 {
			t.Errorf("listed with %+v", h)
		}
	}
	try := lockRequest("try", r.Name)
	try.Try = true
	var held *driver.HeldError
	if _, err := d.Acquire(t.Context(), try); !errors.As(err, &held) || held.Client != "other program" ||
		held.Token != 1700000000000002 {
		t.Errorf("a try: %v", err)
	}
	clock := pace.Of(t, s)
	g, err := d.Acquire(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if waited := time.Since(began); waited < lasts || clock.Now() > lasts+500*time.Millisecond {
		t.Errorf("it got in after %v, want %v", waited, lasts)
	}
	if g.Token <= 1700000000000007 {
		t.Errorf("token %d", g.Token)
	}
}
