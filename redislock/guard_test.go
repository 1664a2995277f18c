package redislock

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/interlock-go/interlock/fence"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/redislock/conn"
	"github.com/redis/rueidis"
)

// newGuard returns a guard on servers, and a client to look with.
func newGuard(t testing.TB, addrs ...string) (*Guard, rueidis.Client) {
	t.Helper()
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: addrs, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return NewGuard(client), client
}

func TestGuard(t *testing.T) {
	g, client := newGuard(t, servers.Redis(t))
	t.Run("JudgesAsMemoryGuard", func(t *testing.T) { guardJudges(t, g) })
	t.Run("GetAndSet_AreFenced", func(t *testing.T) { guardGetsAndSets(t, g) })
	t.Run("Eval_RunsOnlyIfTheStampPasses", func(t *testing.T) { guardEvaluates(t, g, client) })
	t.Run("ManyHoldersAtOnce_LoseNoUpdate", func(t *testing.T) { guardLosesNothing(t, g) })
	t.Run("StrangeInput_IsRefused", func(t *testing.T) { guardRefusesNonsense(t, g) })
	t.Run("AScriptThatIsForgotten_IsSentAgain", func(t *testing.T) {
		if err := client.Do(t.Context(), client.B().ScriptFlush().Build()).Error(); err != nil {
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
}

func guardJudges(t *testing.T, g *Guard) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	var model fence.MemoryGuard
	high := uint64(1<<63 - 10) // numbers of Lua would all be the same here
	for story := range 100 {
		resource := fmt.Sprintf("judged %d", story)
		var told []string
		for range 8 {
			s := fence.Stamp{
				Token: 1 + random.Uint64N(4), Nonce: []string{"a b", "ü\n"}[random.IntN(2)],
				Shared: random.IntN(2) == 0,
			}
			if story%2 == 0 {
				s.Token += high
			}
			got, want := g.Check(t.Context(), resource, s), model.Check(resource, s)
			told = append(told, fmt.Sprint(s, ": ", got))
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("want %v of the last of\n%s", want, strings.Join(told, "\n"))
			}
		}
	}
}

func guardGetsAndSets(t *testing.T, g *Guard) {
	old, young := fence.Stamp{Token: 1, Nonce: "a"}, fence.Stamp{Token: 2, Nonce: "b"}
	reader := fence.Stamp{Token: 3, Nonce: "c", Shared: true}
	want := func(s fence.Stamp, value string, found bool) {
		t.Helper()
		if got, is, err := g.Get(t.Context(), "stock", s); got != value || is != found || err != nil {
			t.Errorf("%v reads %q, %v, %v, want %q, %v", s, got, is, err, value, found)
		}
	}
	want(old, "", false)
	if err := g.Set(t.Context(), "stock", "\x00\xff", old); err != nil {
		t.Error(err)
	}
	want(young, "\x00\xff", true) // which registers it
	if err := g.Set(t.Context(), "stock", "stale", old); !errors.Is(err, fence.ErrStale) {
		t.Errorf("got %v", err)
	}
	if _, _, err := g.Get(t.Context(), "stock", old); !errors.Is(err, fence.ErrStale) {
		t.Errorf("got %v", err)
	}
	want(reader, "\x00\xff", true)
	if err := g.Set(t.Context(), "stock", "stale", young); !errors.Is(err, fence.ErrStale) {
		t.Errorf("a writer that a reader has overtaken: got %v", err)
	}
	if err := g.Set(t.Context(), "stock", "read", reader); !errors.Is(err, errReaderWrites) {
		t.Errorf("got %v", err)
	}
	want(reader, "\x00\xff", true)
}

func guardEvaluates(t *testing.T, g *Guard, client rueidis.Client) {
	const script = `return {redis.call('INCRBY', KEYS[1], ARGV[1]), #KEYS, #ARGV, ARGV[2]}`
	old, young := fence.Stamp{Token: 1, Nonce: "a"}, fence.Stamp{Token: 2, Nonce: "b"}
	reply, err := g.Eval(t.Context(), script, "sum", young, []string{"sum"}, []string{"5", "FENCED w 1 a"})
	if err != nil {
		t.Fatal(err)
	}
	parts, err := reply.ToArray()
	if err != nil || len(parts) != 4 {
		t.Fatalf("got %d parts, %v", len(parts), err)
	}
	for i, want := range []int64{5, 1, 2} {
		if got, err := parts[i].AsInt64(); got != want || err != nil {
			t.Errorf("part %d is %d, %v, want %d", i, got, err, want)
		}
	}
	_, err = g.Eval(t.Context(), script, "sum", old, []string{"sum"}, []string{"5"})
	if !errors.Is(err, fence.ErrStale) {
		t.Errorf("got %v", err)
	}
	if n, err := client.Do(t.Context(), client.B().Get().Key("sum").Build()).AsInt64(); n != 5 || err != nil {
		t.Errorf("the sum is %d, %v", n, err)
	}
	if reply, err := g.Eval(t.Context(), "return false", "sum", young, nil, nil); err != nil || !reply.IsNil() {
		t.Errorf("got %v, %v", reply, err)
	}
	if _, err := g.Eval(t.Context(), "return redis.error_reply('OWN error')", "sum", young, nil, nil); err == nil ||
		errors.Is(err, fence.ErrStale) || !strings.Contains(err.Error(), `guard "sum": OWN error`) {
		t.Errorf("got %v", err)
	}
}

func guardLosesNothing(t *testing.T, g *Guard) {
	var wg sync.WaitGroup
	var mu sync.Mutex // guards accepted
	accepted := 0
	for i := range 8 {
		s := fence.Stamp{Token: uint64(i + 1)}
		wg.Go(func() { // ends after its updates
			for range 50 {
				value, _, err := g.Get(t.Context(), "counter", s)
				if err == nil {
					n := 0
					_, _ = fmt.Sscan(value, &n) // nothing is 0
					err = g.Set(t.Context(), "counter", fmt.Sprint(n+1), s)
				}
				switch {
				case err == nil:
					mu.Lock()
					accepted++
					mu.Unlock()
				case !errors.Is(err, fence.ErrStale):
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	value, _, err := g.Get(t.Context(), "counter", fence.Stamp{Token: 9})
	if value != fmt.Sprint(accepted) || err != nil || accepted < 50 {
		t.Errorf("the counter is %s, %v after %d updates were accepted", value, err, accepted)
	}
}

func guardRefusesNonsense(t *testing.T, g *Guard) {
	for resource, s := range map[string]fence.Stamp{"": {Token: 1}, "r": {}, "s": {Token: 1 << 63}} {
		if err := g.Check(t.Context(), resource, s); err == nil || errors.Is(err, fence.ErrStale) {
			t.Errorf("%q, %v: got %v", resource, s, err)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a nil client does not panic")
		}
	}()
	NewGuard(nil)
}

func TestGuard_InACluster_KeepsMarksInTheSlotOfTheData(t *testing.T) {
	c := servers.RedisCluster(t, 3, 0, nil)
	g, _ := newGuard(t, c.Addrs()...)
	s := fence.Stamp{Token: 2, Nonce: "b"}
	for _, key := range []string{"stock", "stock:{42}", "a}b", "{}", "{a", "stock:{42}:x"} {
		if conn.SlotOf(key) != conn.SlotOf(GuardKey(key)) {
			t.Errorf("%s has its marks in another slot, at %s", key, GuardKey(key))
		}
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
	if _, err := g.Eval(t.Context(), "return 1", "stock:{42}", s, []string{"a:{42}", "b:{42}"}, nil); err != nil {
		t.Error(err)
	}
}

func TestGuard_NeedsNoMoreRightsThanItSays(t *testing.T) {
	addr := servers.Redis(t)
	_, admin := newGuard(t, addr)
	set := admin.B().Arbitrary("ACL", "SETUSER", "shop", "on", ">secret", "~interlock:fence:*", "~stock")
	for right := range strings.FieldsSeq("+eval +evalsha +hmget +hset +get +set +del") {
		set = set.Args(right)
	}
	if err := admin.Do(t.Context(), set.Build()).Error(); err != nil {
		t.Fatal(err)
	}
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{addr}, DisableCache: true, Username: "shop", Password: "secret",
	})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	g, s := NewGuard(client), fence.Stamp{Token: 1}
	_, _, read := g.Get(t.Context(), "stock", s)
	for what, err := range map[string]error{
		"Check": g.Check(t.Context(), "stock", s), "Set": g.Set(t.Context(), "stock", "1", s), "Get": read,
		"Forget": g.Forget(t.Context(), "stock"),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := g.Set(t.Context(), "other", "1", s); err == nil || errors.Is(err, fence.ErrStale) {
		t.Errorf("a key without the right: got %v", err)
	}
}
