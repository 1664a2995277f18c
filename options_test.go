package interlock

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/memlock"
)

func TestBadInput_GetsAClearError(t *testing.T) {
	d := memlock.New(nil)
	defer d.Close()
	c, err := New(d, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	open := func(url string, o *Options) func() error {
		return func() error {
			_, err := Open(t.Context(), url, o)
			return err
		}
	}
	lock := func(name string, o *LockOptions) func() error {
		return func() error {
			_, err := c.Mutex(name, o).Lock(t.Context())
			return err
		}
	}
	for _, row := range []struct {
		what string
		do   func() error
		says string
	}{
		{"no scheme", open("localhost:6379", nil), "must start with a scheme"},
		{
			"unknown scheme", open("carrier-pigeon://x", nil),
			`unknown URL scheme "carrier-pigeon": the engines linked in answer to`,
		},
		{
			"engine not linked in", open("redis://localhost", nil),
			`add import _ "github.com/interlock-go/interlock/redislock"`,
		},
		{"unknown query key", open("mem://?leese=3s", nil), `unknown query key "leese"`},
		{"password stays hidden", open("redis://me:hunter2@/%zz", nil), "redis://"},
		{"negative lease", open("mem://", &Options{Lease: -1}), "too short"},
		{"tiny lease", open("mem://", &Options{Lease: time.Millisecond}), "at least 10ms"},
		{
			"renewal of half the lease", open("mem://", &Options{Lease: 10 * second, Renewal: 5 * second}),
			"less than half of the Lease",
		},
		{"negative renewal", open("mem://", &Options{Renewal: -second}), "at least 1ms"},
		{"negative local time", open("mem://", &Options{LocalHandoffTime: -1}), "LocalHandoffs to -1"},
		{"negative close timeout", open("mem://", &Options{CloseTimeout: -1}), "CloseTimeout"},
		{"over-long client name", open("mem://", &Options{ClientName: strings.Repeat("x", 257)}), "ClientName"},
		{"empty name", lock("", nil), "is empty"},
		{"over-long name", lock(strings.Repeat("x", 513), nil), "513 bytes"},
		{"invalid UTF-8", lock("a\xff", nil), "not valid UTF-8"},
		{"negative lease of a lock", lock("a", &LockOptions{Lease: -second}), "too short"},
		{"bad renewal of a lock", lock("a", &LockOptions{Renewal: 20 * second}), "less than half"},
		{"negative MaxHold", lock("a", &LockOptions{MaxHold: -1}), "MaxHold"},
		{"over-long label", lock("a", &LockOptions{Label: strings.Repeat("x", 257)}), "Label"},
		{"negative MinHold", lock("a", &LockOptions{MinHold: -1}), "MinHold"},
		{"endless MinHold", lock("a", &LockOptions{MinHold: 1 << 62}), "MinHold"},
		{"negative LockDelay", lock("a", &LockOptions{LockDelay: -1}), "LockDelay"},
		{"no driver", func() error { _, err := New(nil, nil); return err }, "the driver is nil"},
		{
			"empty owner", func() error { _, err := c.Lock(WithOwner(t.Context(), ""), "a"); return err },
			"owner is empty",
		},
		{"over-long owner", func() error {
			_, err := c.Lock(WithOwner(t.Context(), strings.Repeat("x", 513)),
				"a")
			return err
		}, "513 bytes"},
		{"break without a name", func() error { return c.Break(t.Context(), KindMutex, "", 1) }, "is empty"},
		{"break of a free lock", func() error { return c.Break(t.Context(), KindMutex, "free", 1) }, "not held"},
		{"over-long prefix", func() error {
			for _, err := range c.List(t.Context(), strings.Repeat("x", 513)) {
				return err
			}
			return nil
		}, "prefix"},
	} {
		t.Run(row.what, func(t *testing.T) {
			err := row.do()
			if err == nil || !strings.Contains(err.Error(), row.says) {
				t.Errorf("got %v, want an error that says %q", err, row.says)
			}
			if err != nil && (strings.Contains(err.Error(), "hunter2") ||
				!strings.HasPrefix(err.Error(), "interlock: ")) {
				t.Errorf("the error reads %q", err)
			}
		})
	}
}

func TestMutex_WithABadName_IsRefusedByEveryCall(t *testing.T) {
	d := memlock.New(nil)
	defer d.Close()
	c := mustNew(t, d, nil)
	defer c.Close()
	m := c.Mutex("", nil)
	nothing := func(context.Context) error { return nil }
	_, tryErr := m.TryLock(t.Context())
	_, tryDoErr := m.TryDo(t.Context(), nothing)
	for _, err := range []error{tryErr, tryDoErr, m.Do(t.Context(), nothing)} {
		if err == nil || errors.Is(err, ErrHeld) {
			t.Errorf("got %v", err)
		}
	}
}

func TestOptions_Defaults(t *testing.T) {
	o, err := (*Options)(nil).withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	if o.Lease != 30*second || o.Renewal != 10*second || o.CloseTimeout != 5*second ||
		!strings.Contains(o.ClientName, ":") {
		t.Errorf("got %+v", o)
	}
}
