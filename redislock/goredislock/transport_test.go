package goredislock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/pace"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/redislock"
	"github.com/interlock-go/interlock/redislock/conn"
	"github.com/redis/go-redis/v9"
)

// solo returns a client of one server.
func solo(addr string) *redis.Client { return redis.NewClient(&redis.Options{Addr: addr}) }

func TestNew_RefusesClientsThatCannotKeepLocks(t *testing.T) {
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "localhost:1"}})
	defer ring.Close()
	for says, client := range map[string]redis.UniversalClient{
		"Ring":          ring,
		"nil":           nil,
		"client is nil": (*redis.Client)(nil),
		"not supported": struct{ *redis.Client }{},
	} {
		if _, err := New(client, nil); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%T: %v, want %q", client, err, says)
		}
	}
}

func TestNew_WithoutAServer_FailsAndLeavesNothing(t *testing.T) {
	leaks.Opened(t)
	defer leaks.Closed()
	client := solo("127.0.0.1:1")
	defer client.Close()
	var broken *net.OpError
	if _, err := New(client, nil); !errors.As(err, &broken) {
		t.Errorf("got %v", err)
	}
	if _, err := New(client, &redislock.Options{Prefix: "{"}); err == nil || !strings.Contains(err.Error(), "prefix") {
		t.Errorf("got %v", err)
	}
}

func TestNew_WithAUserWhoMayNotSubscribe_Fails(t *testing.T) {
	s := servers.RedisServer(t, &servers.RedisOptions{Users: []string{"bob on >secret ~* resetchannels +@all"}})
	for _, protocol := range []int{2, 3} {
		client := redis.NewClient(
			&redis.Options{Addr: s.Addr(), Username: "bob", Password: "secret", Protocol: protocol})
		defer client.Close()
		if _, err := New(client, nil); err == nil || !strings.Contains(err.Error(), "NOPERM") {
			t.Errorf("RESP%d: %v", protocol, err)
		}
	}
	client := redis.NewClient(&redis.Options{Addr: s.Addr(), Username: "bob", Password: "wrong"})
	defer client.Close()
	if _, err := New(client, nil); err == nil || !strings.Contains(err.Error(), "WRONGPASS") {
		t.Errorf("got %v", err)
	}
}

// What a URL refuses when it is opened, a client is refused for too, in the same words and with an address.
func TestNew_OverAServerThatKeepsNoLocks_IsRefusedAsByURL(t *testing.T) {
	r := servers.RedisReplicated(t, 1, nil)
	c := servers.RedisCluster(t, 2, 0, nil)
	sentinel := servers.RedisSentinel(t, 0, nil).Sentinels()[0]
	for says, addr := range map[string]string{
		"the server is a replica or a sentinel": r.Replicas[0].Addr(),
		"the server is a node of a Cluster":     c.Owner(0).Addr(),
		"is a replica or a sentinel":            sentinel,
	} {
		client := solo(addr)
		defer client.Close()
		for way, open := range map[string]func() error{
			"go-redis": func() error { _, err := New(client, nil); return err },
			"URL": func() error {
				_, err := driver.DefaultMux.Open(t.Context(), "redis://"+addr, driver.Config{})
				return err
			},
		} {
			err := open()
			refused := driver.Refusal(err)
			if refused == nil || refused.Hint == "" || !strings.Contains(err.Error(), says) ||
				!strings.Contains(err.Error(), "cannot use "+addr) ||
				!strings.Contains(err.Error(), refused.Hint) {
				t.Errorf("%s to %s: %v, want a refusal with the address that says %q and what to do",
					way, addr, err, says)
			}
		}
	}
}

func TestNew_OverAClosedPort_SaysWhereAndWhatToDo(t *testing.T) {
	client := solo("127.0.0.1:1")
	defer client.Close()
	_, err := New(client, nil)
	if err == nil || !errors.Is(err, driver.ErrUnavailable) || driver.Refusal(err) != nil ||
		!strings.Contains(err.Error(), "cannot use 127.0.0.1:1") ||
		!strings.Contains(err.Error(), "does the server run?") {
		t.Errorf("got %v", err)
	}
}

func TestAcquire_ThatTheServerRefuses_IsTheSameOverGoRedis(t *testing.T) {
	for name, open := range ways {
		t.Run(name, func(t *testing.T) { refusesAsByURL(t, open) })
	}
}

func refusesAsByURL(t *testing.T, open way) {
	for says, refuse := range map[string][]string{
		"NOPERM":        {"ACL", "SETUSER", "bob", "-evalsha", "-eval"},
		"OOM":           {"CONFIG", "SET", "maxmemory", "1"},
		"replica":       {"REPLICAOF", "127.0.0.1", "1"},
		"did not write": {"LPUSH", "interlock:mutex:x", "secret"},
	} {
		s := servers.RedisServer(t, &servers.RedisOptions{Users: []string{"bob on >secret ~* &* +@all"}})
		client := redis.NewClient(&redis.Options{Addr: s.Addr(), Username: "bob", Password: "secret"})
		defer client.Close()
		d, err := open(client, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		if _, err := s.Do(t.Context(), refuse...); err != nil {
			t.Fatal(err)
		}
		_, err = d.Acquire(t.Context(), &driver.Request{
			Key: driver.Key{Kind: driver.KindMutex, Name: "x"}, ID: "id", Owner: "o", Lease: time.Minute, Tokens: 1,
		})
		refused := driver.Refusal(err)
		if refused == nil || refused.Open || refused.Hint == "" || !strings.Contains(err.Error(), says) ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%v: %v, want a refusal that says %q", refuse, err, says)
		}
	}
}

// The rights that package redislock names are enough, also for what go-redis sends by itself.
func TestConn_WithTheRightsThatAreDocumented_Works(t *testing.T) {
	s := servers.RedisServer(t,
		&servers.RedisOptions{Users: []string{"bob on >secret resetchannels ~interlock:* &interlock:* +eval +evalsha " +
			"+subscribe +scan +time +get +mget +set +del +hset +hget +hmget +hdel +pttl +pexpire +pexpireat " +
			"+zadd +zrem +zremrangebyscore +zrange +zscore +zcard +hgetall +publish"}})
	client := redis.NewClient(&redis.Options{Addr: s.Addr(), Username: "bob", Password: "secret"})
	c := opened(t, client)
	h := newTeller()
	if err := c.Start(t.Context(), "interlock:push:test", h); err != nil {
		t.Fatal(err)
	}
	if got := mustCall(t, c, lockCall(t, "a")); got != "G" {
		t.Errorf("got %q", got)
	}
	nodesOf(t, c, 1)
	f, err := c.subscribe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f.demand(&demand{kind: ping}) // is refused, which is an answer too
	eventually(t, "the server's answer to a ping", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.err == nil && len(f.todo) == 0 && len(f.sent) == 0
	})
	h.None(t)
}

func TestCall_OfAScriptThatTheServerForgot_SendsItsSource(t *testing.T) {
	addr := servers.Redis(t)
	c := begin(t, solo(addr), newTeller())
	for i := range 3 {
		evals := ran(t, addr, "eval")
		for range 2 {
			mustCall(t, c, lockCall(t, fmt.Sprint(i)))
		}
		if got := ran(t, addr, "eval") - evals; got != 1 {
			t.Errorf("%d sources were sent", got)
		}
		admin(t, addr, "SCRIPT", "FLUSH")
		calls := []conn.Call{lockCall(t, "b1"), lockCall(t, "b2"), replicated(lockCall(t, "b3"))}
		calls[2].ReplicaTimeout = time.Millisecond
		for i, r := range runBatch(t.Context(), t, c, calls) {
			if r.Err != nil || r.Acked != 0 {
				t.Errorf("call %d of a batch: %+v", i, r)
			}
		}
		admin(t, addr, "SCRIPT", "FLUSH")
	}
}

func TestBatch_OfManyCalls_AnswersEachOnce(t *testing.T) {
	addr := servers.Redis(t)
	c := begin(t, solo(addr), newTeller())
	calls := make([]conn.Call, 2*mostPipelined+10)
	for i := range calls {
		calls[i] = lockCall(t, fmt.Sprint(i/2))
	}
	for i, r := range runBatch(t.Context(), t, c, calls) {
		if want := []string{"G", "H"}[i%2]; r.Err != nil || word(r) != want {
			t.Errorf("call %d: %+v, want %s", i, r, want)
		}
	}
	runBatch(t.Context(), t, c, nil)
}

func TestCall_WithReplicas_CountsWhoHasAcknowledged(t *testing.T) {
	s := servers.RedisReplicated(t, 1, nil)
	// WAIT may take longer than the client waits for an answer, which is long enough for a machine under load.
	c := begin(t, redis.NewClient(&redis.Options{Addr: s.Primary.Addr(), ReadTimeout: time.Second}), newTeller())
	one := replicated(lockCall(t, "one"))
	if r := c.Call(t.Context(), &one); r.Err != nil || r.Acked != 1 {
		t.Errorf("got %+v", r)
	}
	two := lockCall(t, "two")
	two.Replicas, two.ReplicaTimeout = 2, 1500*time.Millisecond
	begin := time.Now()
	if r := c.Call(t.Context(), &two); r.Err != nil || word(r) != "G" || r.Acked != 1 {
		t.Errorf("got %+v", r)
	}
	if d := time.Since(begin); d < two.ReplicaTimeout {
		t.Errorf("took %v", d)
	}
}

func TestCall_ThatIsRefused_SaysSo(t *testing.T) {
	s := servers.RedisServer(t, &servers.RedisOptions{Users: []string{"bob on >secret ~* &* +@all -eval -evalsha"}})
	bob := redis.NewClient(&redis.Options{Addr: s.Addr(), Username: "bob", Password: "secret"})
	pool := redis.NewClient(&redis.Options{
		Addr: servers.Redis(t), PoolSize: 1, PoolTimeout: 50 * time.Millisecond,
	})
	crowded := begin(t, pool, newTeller())
	taken := pool.Conn()
	defer taken.Close()
	if err := taken.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	// Later versions have a pool of their own for pipelines, so it is a plain Call that finds no connection.
	call := lockCall(t, "a")
	if r := crowded.Call(t.Context(), &call); !isRefused(r.Err) || !errors.Is(r.Err, redis.ErrPoolTimeout) {
		t.Errorf("got %+v, want a refusal: there is no connection", r)
	}
	c := begin(t, bob, newTeller())
	acked := replicated(call)
	acked.ReplicaTimeout = 10 * time.Millisecond // there are none
	for _, call := range []conn.Call{call, acked} {
		for _, r := range []conn.Reply{c.Call(t.Context(), &call), runBatch(t.Context(), t, c, []conn.Call{call})[0]} {
			if !isRefused(r.Err) || !strings.Contains(r.Err.Error(), "NOPERM") {
				t.Errorf("got %+v, want a refusal with NOPERM", r)
			}
		}
	}
}

func TestCall_AtAServerThatHasBecomeAReplica_WaitsForThePrimary(t *testing.T) {
	s := servers.RedisReplicated(t, 1, nil)
	addr := s.Replicas[0].Addr()
	admin(t, addr, "REPLICAOF", "NO", "ONE") // a replica is refused at the start
	c := begin(t, solo(addr), newTeller())
	host, port, _ := net.SplitHostPort(s.Primary.Addr())
	admin(t, addr, "REPLICAOF", host, port)
	call := lockCall(t, "a")
	clock, begin := pace.Of(t, s.Replicas[0]), time.Now()
	if r := c.Call(t.Context(), &call); !isRefused(r.Err) || !strings.Contains(r.Err.Error(), "READONLY") {
		t.Errorf("got %+v", r)
	}
	if d := time.Since(begin); d < patience || clock.Now() > patience+time.Second {
		t.Errorf("the refusal took %v", d)
	}
	if nodes, err := c.Nodes(t.Context()); err == nil {
		t.Errorf("Nodes: %v", nodes)
	}
	answer, before := make(chan conn.Reply, 1), ran(t, addr, "evalsha")
	go func() { answer <- c.Call(t.Context(), &call) }()
	eventually(t, "a try", func() bool { return ran(t, addr, "evalsha") > before })
	admin(t, addr, "REPLICAOF", "NO", "ONE")
	if r := <-answer; r.Err != nil {
		t.Errorf("got %+v", r)
	}
}

func TestNode_RunsCommands(t *testing.T) {
	addr := servers.Redis(t)
	for _, protocol := range []int{2, 3} {
		c := begin(t, redis.NewClient(&redis.Options{Addr: addr, Protocol: protocol}), newTeller())
		nodes := nodesOf(t, c, 1)
		if nodes[0].Addr() != addr {
			t.Fatalf("Nodes: %v", nodes)
		}
		for _, test := range []struct{ command, want string }{
			{"ECHO x", "x"},
			{"DBSIZE", "0"},
			{"GET none", "<nil>"},
			{"MGET none nil", "[<nil> <nil>]"},
			{"CONFIG GET appendfsync", "[appendfsync everysec]"},
			{"COMMAND COUNT none", "ERR"},
			{"SUBSCRIBE x", "whole connection"},
			{"monitor", "whole connection"},
			{"", "no command"},
		} {
			got, err := nodes[0].Do(t.Context(), strings.Fields(test.command)...)
			if fmt.Sprint(got) != test.want && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("RESP%d: %s: %v, %v, want %s", protocol, test.command, got, err, test.want)
			}
		}
	}
}

func TestPlain_HasNoOtherTypes(t *testing.T) {
	got := plain(
		[]any{"a", int64(1), nil, true, false, 1.5, answer("ERR"), redis.Nil, map[any]any{"b": 2.0, "a": []any{true}}})
	want := []any{"a", int64(1), nil, int64(1), int64(0), "1.5", "ERR", nil, []any{"a", []any{int64(1)}, "b", "2"}}
	if fmt.Sprintf("%#v", got) != fmt.Sprintf("%#v", want) {
		t.Errorf("got %#v, want %#v", got, want)
	}
}

func TestClose_LeavesTheClientOpen(t *testing.T) {
	for name, open := range ways {
		t.Run(name, func(t *testing.T) { closes(t, open) })
	}
}

func closes(t *testing.T, open way) {
	addr := servers.Redis(t)
	client := solo(addr)
	defer client.Close()
	d, err := open(client, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(admin(t, addr, "PUBSUB", "CHANNELS")); got == "[]" {
		t.Error("the driver listens to nothing")
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Errorf("the client: %v", err)
	}
	eventually(t, "the subscription to end", func() bool {
		return fmt.Sprint(admin(t, addr, "PUBSUB", "CHANNELS")) == "[]"
	})
	if err := d.Close(); err != nil {
		t.Errorf("the second time: %v", err)
	}
}

func TestClose_InTheMidstOfCalls_EndsThem(t *testing.T) {
	addr := servers.Redis(t)
	for range 5 {
		c := begin(t, solo(addr), newTeller())
		var callers sync.WaitGroup
		for range 32 {
			callers.Go(func() {
				for call := lockCall(t, "a"); ; {
					if r := c.Call(t.Context(), &call); r.Err != nil {
						if !errors.Is(r.Err, driver.ErrClosed) {
							t.Errorf("got %v", r.Err)
						}
						return
					}
				}
			})
		}
		mustCall(t, c, lockCall(t, "a"))
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		callers.Wait()
	}
}

func TestNewPooled_OverAClientThatIsClosedFirst_RefusesCalls(t *testing.T) {
	client := solo(servers.Redis(t))
	d, err := NewPooled(client, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = d.Acquire(context.WithoutCancel(t.Context()), &driver.Request{
		Key: driver.Key{Kind: driver.KindMutex, Name: "a"}, ID: "i", Owner: "o", Lease: time.Minute,
	})
	if !errors.Is(err, redis.ErrClosed) {
		t.Errorf("got %v", err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}
