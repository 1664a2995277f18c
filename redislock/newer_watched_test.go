package redislock

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
)

// operator sends commands to a server.
type operator struct {
	t *testing.T
	s *servers.RedisNode
}

func (o operator) do(args ...string) string {
	o.t.Helper()
	answer, err := o.s.Do(o.t.Context(), args...)
	if err != nil {
		o.t.Fatalf("%v: %v", args, err)
	}
	return fmt.Sprint(answer)
}

// refusedAsNewer makes calls, which must be refused for the format of key, and must not change it.
func (o operator) refusedAsNewer(key string, calls map[string]func() error) {
	o.t.Helper()
	before := o.do("DUMP", key)
	for what, call := range calls {
		err := call()
		if !errors.Is(err, driver.ErrConflict) || !driver.IsDefinite(err) ||
			!strings.Contains(err.Error(), "later version of interlock") {
			o.t.Errorf("%s: %v, want a definite error that matches ErrConflict and says why", what, err)
		}
	}
	if after := o.do("DUMP", key); after != before {
		o.t.Errorf("it was changed to %q", after)
	}
}

func TestALatchOfALaterFormat_IsRefusedAsAConflictAndNotChanged(t *testing.T) {
	s := servers.RedisServer(t, nil)
	d, o := open(t, soloOption(s.Addr()), nil), operator{t, s}
	c := &driver.LatchCall{
		Key: driver.Key{Kind: driver.KindLatch, Name: "later"}, ID: "mine", Count: 3, Horizon: time.Minute,
	}
	key, slot := d.names.lock(c.Key)
	o.do("HSET", key, "v", "2", "n", "1", "s", c.ID)
	o.refusedAsNewer(key, map[string]func() error{
		"SetLatch":   func() error { _, err := d.SetLatch(t.Context(), c); return err },
		"CountDown":  func() error { _, err := d.CountDown(t.Context(), c); return err },
		"LatchCount": func() error { _, err := d.LatchCount(t.Context(), c.Key); return err },
	})
	if lasts := o.do("PTTL", key); lasts != "-1" {
		t.Errorf("it lasts %s ms, want for ever", lasts)
	}
	if known := o.do("EXISTS", d.names.tomb(slot, c.ID)); known != "0" {
		t.Errorf("the refusal is remembered as the answer to this ID")
	}
}

// The scripts of elections look at the watchers first, and those must not be told of what has not happened.
func TestAnElectionOfALaterFormat_IsRefusedAndItsWatchersAreNotTold(t *testing.T) {
	s := servers.RedisServer(t, nil)
	d, o := open(t, soloOption(s.Addr()), nil), operator{t, s}
	c, err := s.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Do(t.Context(), "SUBSCRIBE", "watcher"); err != nil {
		t.Fatal(err)
	}
	for form, command := range map[string][]string{
		"thin": {"SET", "2 " + strings.Repeat("x ", 11) + `{"o":"later"}`},
		"hash": {"HSET", "v", "3", "h", "P2 later", "a", "0", "z", "0", "k", "0"},
	} {
		r := lockRequest("mine", form)
		r.Kind = driver.KindElection
		next := *r
		next.ID = "next"
		key, slot := d.names.lock(r.Key)
		o.do(append([]string{command[0], key}, command[1:]...)...)
		watchers := d.names.watchers(slot, r.Key)
		o.do("ZADD", watchers, strconv.FormatInt(time.Now().Add(time.Hour).UnixMilli(), 10), "p watcher")
		list := o.do("ZRANGE", watchers, "0", "-1", "WITHSCORES")
		o.refusedAsNewer(key, map[string]func() error{
			"Acquire": func() error { _, err := d.Acquire(t.Context(), r); return err },
			"Requeue": func() error {
				_, err := d.Requeue(t.Context(), &driver.Release{Key: r.Key, ID: "given"}, &next)
				return err
			},
			"Release": func() error { return d.Release(t.Context(), &driver.Release{Key: r.Key, ID: r.ID}) },
			"Break":   func() error { return d.Break(t.Context(), r.Key, 1) },
			"Look":    func() error { _, err := driver.Look(t.Context(), d, r.Key); return err },
		})
		if now := o.do("ZRANGE", watchers, "0", "-1", "WITHSCORES"); now != list {
			t.Errorf("%s: the watchers are %q, and were %q", form, now, list)
		}
	}
	o.do("PUBLISH", "watcher", "the end")
	if told, err := c.Receive(t.Context()); err != nil || !strings.HasSuffix(fmt.Sprint(told), "the end]") {
		t.Errorf("the watchers are told %v, %v", told, err)
	}
}
