package goredislock

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/fence"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/redislock"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
)

func TestGuard(t *testing.T) {
	addr := servers.Redis(t)
	client := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { _ = client.Close() })
	g := NewGuard(client)
	t.Run("IsOneFenceWithThatOfRueidis", func(t *testing.T) { guardsAgree(t, g, addr) })
	t.Run("GetAndSet_AreFenced", func(t *testing.T) { guardGetsAndSets(t, g) })
	t.Run("Eval_RunsOnlyIfTheStampPasses", func(t *testing.T) { guardEvaluates(t, g, client) })
	t.Run("AScriptThatIsForgotten_IsSentAgain", func(t *testing.T) {
		if err := client.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		if err := g.Check(t.Context(), "flushed", fence.Stamp{Token: 1}); err != nil {
			t.Error(err)
		}
	})
	t.Run("Forget_RemovesTheMarks", func(t *testing.T) {
		_ = g.Check(t.Context(), "gone", fence.Stamp{Token: 2})
		if err := errors.Join(g.Forget(t.Context(), "gone"),
			g.Check(t.Context(), "gone", fence.Stamp{Token: 1})); err != nil {
			t.Error(err)
		}
	})
	t.Run("StrangeInput_IsRefused", func(t *testing.T) {
		for resource, s := range map[string]fence.Stamp{"": {Token: 1}, "r": {}, "s": {Token: 1 << 63}} {
			if err := g.Check(t.Context(), resource, s); err == nil || errors.Is(err, fence.ErrStale) {
				t.Errorf("%q, %v: got %v", resource, s, err)
			}
		}
	})
}

// guardsAgree asks one of two guards at random, and compares each answer with that of a guard in memory.
func guardsAgree(t *testing.T, g *Guard, addr string) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	other, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	theirs := redislock.NewGuard(other)
	var model fence.MemoryGuard
	for story := range 50 {
		resource := fmt.Sprintf("judged %d", story)
		for range 8 {
			s := fence.Stamp{
				Token: 1<<62 + random.Uint64N(4), Nonce: []string{"a b", "ü\n"}[random.IntN(2)],
				Shared: random.IntN(2) == 0,
			}
			check := g.Check
			if random.IntN(2) == 0 {
				check = theirs.Check
			}
			got, want := check(t.Context(), resource, s), model.Check(resource, s)
			if fmt.Sprint(got) != fmt.Sprint(want) || errors.Is(got, fence.ErrStale) != (want != nil) {
				t.Fatalf("%s, %v: got %v, want %v", resource, s, got, want)
			}
		}
	}
}

func guardGetsAndSets(t *testing.T, g *Guard) {
	old, young := fence.Stamp{Token: 1, Nonce: "a"}, fence.Stamp{Token: 2, Nonce: "b"}
	if _, found, err := g.Get(t.Context(), "stock", old); found || err != nil {
		t.Errorf("nothing: got %v, %v", found, err)
	}
	if err := g.Set(t.Context(), "stock", "\x00\xff", old); err != nil {
		t.Error(err)
	}
	if value, found, err := g.Get(t.Context(), "stock", young); value != "\x00\xff" || !found || err != nil {
		t.Errorf("got %q, %v, %v", value, found, err)
	}
	if err := g.Set(t.Context(), "stock", "stale", old); !errors.Is(err, fence.ErrStale) {
		t.Errorf("a write of who was overtaken: got %v", err)
	}
	if _, _, err := g.Get(t.Context(), "stock", old); !errors.Is(err, fence.ErrStale) {
		t.Errorf("a read of who was overtaken: got %v", err)
	}
	if err := g.Set(t.Context(), "stock", "read", fence.Stamp{Token: 3, Shared: true}); err == nil {
		t.Error("a reader writes")
	}
}

func guardEvaluates(t *testing.T, g *Guard, client redis.UniversalClient) {
	const script = `return {redis.call('INCRBY', KEYS[1], ARGV[1]), #KEYS, #ARGV}`
	old, young := fence.Stamp{Token: 1, Nonce: "a"}, fence.Stamp{Token: 2, Nonce: "b"}
	reply, err := g.Eval(t.Context(), script, "sum", young, []string{"sum"}, []string{"5"})
	if fmt.Sprint(reply) != "[5 1 1]" || err != nil {
		t.Errorf("got %v, %v", reply, err)
	}
	_, err = g.Eval(t.Context(), script, "sum", old, []string{"sum"}, []string{"5"})
	if !errors.Is(err, fence.ErrStale) {
		t.Errorf("got %v", err)
	}
	if n, err := client.Get(t.Context(), "sum").Int(); n != 5 || err != nil {
		t.Errorf("the sum is %d, %v", n, err)
	}
	if reply, err := g.Eval(t.Context(), "return false", "sum", young, nil, nil); err != nil || reply != nil {
		t.Errorf("got %v, %v", reply, err)
	}
	if _, err := g.Eval(t.Context(), "return redis.error_reply('OWN error')", "sum", young, nil, nil); err == nil ||
		errors.Is(err, fence.ErrStale) || !strings.Contains(err.Error(), `guard "sum": OWN error`) {
		t.Errorf("got %v", err)
	}
}

func TestGuard_InACluster_KeepsMarksInTheSlotOfTheData(t *testing.T) {
	cluster := servers.RedisCluster(t, 3, 0, nil)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs()})
	t.Cleanup(func() { _ = client.Close() })
	g, s := NewGuard(client), fence.Stamp{Token: 2, Nonce: "b"}
	for _, key := range []string{"stock", "stock:{42}", "a}b", "{a"} {
		if err := g.Set(t.Context(), key, "1", s); err != nil {
			t.Errorf("%s: %v", key, err)
		}
		if err := g.Set(t.Context(), key, "2", fence.Stamp{Token: 1, Nonce: "a"}); !errors.Is(err, fence.ErrStale) {
			t.Errorf("%s: got %v", key, err)
		}
		if got, found, err := g.Get(t.Context(), key, s); got != "1" || !found || err != nil {
			t.Errorf("%s: got %q, %v, %v", key, got, found, err)
		}
	}
	_, err := g.Eval(t.Context(), "return 1", "stock:{42}", s, []string{"a:{42}", "b"}, nil)
	if err == nil || !strings.Contains(err.Error(), "slot") {
		t.Errorf("got %v", err)
	}
}

// A script whose reply is lost has perhaps run, so it is not sent again although the client would.
func TestGuard_DoesNotSendAgain_WhatMayHaveRun(t *testing.T) {
	addr := servers.Redis(t)
	proxy := servers.NewProxy(t, addr)
	client := redis.NewClient(&redis.Options{Addr: proxy.Addr(), MaxRetries: 5, ReadTimeout: 2 * time.Second})
	defer client.Close()
	idle := []*redis.Conn{client.Conn(), client.Conn(), client.Conn()} // for tries that find the reply lost
	for _, c := range idle {
		if err := c.Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range idle {
		_ = c.Close()
	}
	g, s := NewGuard(client), fence.Stamp{Token: 1, Nonce: "a"}
	if err := g.Check(t.Context(), "sum", s); err != nil {
		t.Fatal(err)
	}
	const script = `return redis.call('INCR', KEYS[1])`
	if _, err := g.Eval(t.Context(), script, "sum", s, []string{"sum"}, nil); err != nil {
		t.Fatal(err)
	}
	proxy.DropReplies()
	if _, err := g.Eval(t.Context(), script, "sum", s, []string{"sum"}, nil); err == nil ||
		errors.Is(err, fence.ErrStale) {
		t.Errorf("without a reply: got %v", err)
	}
	direct := redis.NewClient(&redis.Options{Addr: addr})
	defer direct.Close()
	if n, err := direct.Get(t.Context(), "sum").Int(); n != 2 || err != nil {
		t.Errorf("the script ran %d times, %v, want 2", n, err)
	}
}
