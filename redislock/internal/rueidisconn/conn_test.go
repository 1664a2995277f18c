package rueidisconn

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/redislock/conn"
	"github.com/redis/rueidis"
)

func TestCall_AnswersOverTheLinkThatPushesComeOver(t *testing.T) {
	h := newTeller()
	c := start(t, soloOption(servers.Redis(t)), h)
	text, link := mustCall(t, c, echoCall("hello"))
	if text != "hello" || link == 0 {
		t.Errorf("the answer is %q over link %d", text, link)
	}
	mustCall(t, c, conn.Call{Script: pushScript, Args: []string{testChannel, "granted"}})
	h.Want(t, pushed(link, testChannel, "granted"))
	h.None(t)
}

func TestCall_WithRESP2_HasNoLinkButPushes(t *testing.T) {
	h := newTeller()
	option := soloOption(servers.Redis(t))
	option.AlwaysRESP2 = true
	c := start(t, option, h)
	if text, link := mustCall(t, c, echoCall("hello")); text != "hello" || link != 0 {
		t.Errorf("the answer is %q over link %d", text, link)
	}
	mustCall(t, c, conn.Call{Script: pushScript, Args: []string{testChannel, "granted"}})
	h.Want(t, pushed(0, testChannel, "granted"))
}

func TestCall_OfAScriptThatTheServerForgot_SendsTheSource(t *testing.T) {
	addr := servers.Redis(t)
	c := start(t, soloOption(addr), newTeller())
	call := conn.Call{Script: incrScript, Keys: []string{"n"}}
	for _, want := range []string{"1", "2"} {
		if got, _ := mustCall(t, c, call); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	adminDo(t, addr, "SCRIPT", "FLUSH")
	if got, _ := mustCall(t, c, call); got != "3" {
		t.Errorf("after SCRIPT FLUSH: got %q, want 3", got)
	}
}

func TestCall_OfAScriptThatFails_IsNotCalledRefused(t *testing.T) {
	c := start(t, soloOption(servers.Redis(t)), newTeller())
	for name, source := range map[string]string{
		"an error of its own":       `error('oops')`,
		"a command that is wrong":   `redis.call('SET', KEYS[1], 1) redis.call('LPUSH', KEYS[1], 1) return ''`,
		"an answer that is no text": `return 5`,
		"no answer":                 `return nil`,
	} {
		r := c.Call(t.Context(), &conn.Call{Script: conn.NewScript(source), Keys: []string{"s"}})
		if r.Err == nil || isRefused(r.Err) || r.Text != "" {
			t.Errorf("%s: %+v, want an error that leaves the outcome open", name, r)
		}
	}
}

func TestCall_WhileTheServerIsBusy_WaitsForIt(t *testing.T) {
	s := servers.RedisServer(t, &servers.RedisOptions{Config: map[string]string{"lua-time-limit": "5"}})
	c := start(t, soloOption(s.Addr()), newTeller())
	for try := 1; ; try++ {
		r, took := callWhileBusy(t, s, c)
		if r.Err == nil && r.Text == "at last" {
			return
		}
		if took < patience/2 || try == 3 { // else the machine stood still, and the call has waited long enough
			t.Fatalf("after the server was free again: %+v", r)
		}
	}
}

// callWhileBusy makes a call while the server runs a script, and ends that. It returns the answer, and how long the
// server was busy with the call there.
func callWhileBusy(t *testing.T, s *servers.RedisNode, c conn.Conn) (conn.Reply, time.Duration) {
	t.Helper()
	busy, err := s.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	if err := busy.Send(t.Context(), "EVAL", "while true do end", "0"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the server to be busy", func() bool {
		_, err := s.Do(t.Context(), "PING")
		return err != nil && strings.HasPrefix(err.Error(), "BUSY")
	})
	answer := make(chan conn.Reply, 1)
	call := echoCall("at last")
	begin := time.Now()
	go func() { answer <- c.Call(t.Context(), &call) }()
	select {
	case r := <-answer:
		if r.Err == nil || !isRefused(r.Err) || time.Since(begin) < patience {
			t.Fatalf("answered by a busy server: %+v", r)
		}
		answer <- r
	case <-time.After(100 * time.Millisecond): // long enough for several tries
	}
	if _, err := s.Do(t.Context(), "SCRIPT", "KILL"); err != nil {
		t.Fatal(err)
	}
	took := time.Since(begin)
	return <-answer, took
}

func TestCall_ThatMayNotRun_IsRefused(t *testing.T) {
	s := servers.RedisServer(t, &servers.RedisOptions{
		Users: []string{"bob on >secret ~* &* +@all -evalsha -eval", "default on >main ~* &* +@all"},
	})
	option := soloOption(s.Addr())
	option.Username, option.Password = "bob", "secret"
	call := echoCall("x")
	if r := start(t, option, newTeller()).Call(t.Context(), &call); !isRefused(r.Err) {
		t.Errorf("without permission: %v, want a refusal", r.Err)
	}
	option.Password = "wrong"
	client, _ := rueidis.NewClient(option) // it comes with the error that Start is to find
	c := New(client, true)
	defer c.Close()
	if err := c.Start(t.Context(), testChannel, newTeller()); !isRefused(err) ||
		!strings.Contains(err.Error(), "WRONGPASS") {
		t.Errorf("with a wrong password: %v, want a refusal", err)
	}
}

func TestStart_AtAReplica_IsRefused(t *testing.T) {
	r := servers.RedisReplicated(t, 1, nil)
	c := open(t, soloOption(r.Replicas[0].Addr()))
	if err := c.Start(t.Context(), testChannel, newTeller()); !isRefused(err) || !errors.Is(err, conn.ErrReplica) {
		t.Errorf("Start: %v, want a refusal", err)
	}
}

func TestCall_OfAPrimaryThatBecameAReplica_IsRefused(t *testing.T) {
	r := servers.RedisReplicated(t, 1, nil)
	h := newTeller()
	c := start(t, soloOption(r.Primary.Addr()), h)
	_, link := mustCall(t, c, conn.Call{Script: incrScript, Keys: []string{"n"}})
	adminDo(t, r.Primary.Addr(), "REPLICAOF", "127.0.0.1", "1")
	if got := c.Call(t.Context(), &conn.Call{Script: incrScript, Keys: []string{"n"}}); !isRefused(got.Err) {
		t.Errorf("got %+v, want a refusal", got)
	}
	h.Want(t, told{Link: link})
	adminDo(t, r.Primary.Addr(), "REPLICAOF", "NO", "ONE")
	if got, again := mustCall(t, c, conn.Call{Script: incrScript, Keys: []string{"n"}}); got != "2" || again == link {
		t.Errorf("the primary again: %q over link %d", got, again)
	}
	h.Want(t, told{Link: link, Resumed: true})
}

func TestCall_WithReplicas_CountsThoseThatAcknowledge(t *testing.T) {
	r := servers.RedisReplicated(t, 2, nil)
	c := start(t, soloOption(r.Primary.Addr()), newTeller())
	call := conn.Call{Script: incrScript, Keys: []string{"n"}, Replicas: 2, ReplicaTimeout: 5 * time.Second}
	for _, want := range []string{"1", "2"} { // the second over a connection that was given back
		got := c.Call(t.Context(), &call)
		if got.Err != nil || got.Text != want || got.Acked != 2 || got.Link != 0 {
			t.Errorf("got %+v, want %q from 2", got, want)
		}
	}
	r.Replicas[1].Stop()
	call.ReplicaTimeout = 100 * time.Millisecond // in which a machine under load may not run the other one
	calls, n := []conn.Call{call, {Script: incrScript, Keys: []string{"m"}}, call}, 2
	eventually(t, "one of two replicas to acknowledge", func() bool {
		n++
		got := c.Call(t.Context(), &call)
		if got.Err != nil || got.Text != fmt.Sprint(n) || got.Acked > 1 {
			t.Fatalf("with a replica that hangs: %+v, want %d from 1", got, n)
		}
		return got.Acked == 1
	})
	eventually(t, "one of two replicas to acknowledge a batch", func() bool {
		replies := runBatch(t, c, calls)
		if replies[0].Acked > 1 || replies[1].Acked != 0 || replies[2].Acked > 1 || replies[1].Link == 0 {
			t.Fatalf("a batch, some with replicas: %+v", replies)
		}
		return replies[0].Acked == 1 && replies[2].Acked == 1
	})
}

func TestBatch_RunsEachCallOnceAndSendsAScriptThatIsNotKnown(t *testing.T) {
	addr := servers.Redis(t)
	c := start(t, soloOption(addr), newTeller())
	const n = 3*mostPipelined + 7
	calls := make([]conn.Call, n)
	for i := range calls {
		calls[i] = conn.Call{Script: incrScript, Keys: []string{fmt.Sprint("n", i%10)}}
	}
	calls[5].Script = conn.NewScript(`error('oops')`)
	calls[15].Script = conn.NewScript(`error('oops')`)
	for i, r := range runBatch(t, c, calls) {
		if i == 5 || i == 15 {
			if r.Err == nil || isRefused(r.Err) {
				t.Errorf("a call that fails: %+v", r)
			}
		} else if r.Err != nil || r.Link == 0 {
			t.Fatalf("call %d: %+v", i, r)
		}
	}
	if got, want := adminDo(t, addr, "GET", "n1"), fmt.Sprint(n/10+1); got != want {
		t.Errorf("n1 was counted to %s, want %s", got, want)
	}
	if got, want := adminDo(t, addr, "GET", "n5"), fmt.Sprint(n/10-2); got != want {
		t.Errorf("n5 was counted to %s, want %s", got, want)
	}
	runBatch(t, c, nil)
}

func TestNodes_OfAServerAlone_IsThatServer(t *testing.T) {
	r := servers.RedisReplicated(t, 1, nil)
	option := soloOption(r.Primary.Addr())
	option.ForceSingleClient = false
	option.Standalone.ReplicaAddress = []string{r.Replicas[0].Addr()}
	option.SendToReplicas = func(cmd rueidis.Completed) bool { return cmd.IsReadOnly() }
	c := start(t, option, newTeller())
	nodes := nodesOf(t, c, 1)
	if nodes[0].Addr() != r.Primary.Addr() {
		t.Fatalf("Nodes: %v", nodes)
	}
	n := nodes[0]
	do := func(args ...string) any {
		t.Helper()
		answer, err := n.Do(t.Context(), args...)
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return answer
	}
	for _, row := range []struct {
		command string
		want    any
	}{
		{"SET k v", "OK"},
		{"GET k", "v"},
		{"GET none", nil},
		{"STRLEN k", int64(1)},
		{"RPUSH l a b", int64(2)},
		{"LRANGE l 0 -1", []any{"a", "b"}},
		{"CONFIG GET maxmemory", []any{"maxmemory", "0"}},
		{"HSET h x 1 a 2", int64(2)},
		{"HGETALL h", []any{"a", "2", "x", "1"}},
		{"ZADD z 1.5 m", int64(1)},
		{"ZSCORE z m", "1.5"},
		{"MGET k none", []any{"v", nil}},
	} {
		if got := do(strings.Fields(row.command)...); fmt.Sprintf("%#v", got) != fmt.Sprintf("%#v", row.want) {
			t.Errorf("%s: %#v, want %#v", row.command, got, row.want)
		}
	}
	for _, wrong := range []string{"", "NOSUCH", "SUBSCRIBE x", "monitor", "GET"} {
		if got, err := n.Do(t.Context(), strings.Fields(wrong)...); err == nil {
			t.Errorf("%q is answered %v", wrong, got)
		}
	}
}

func TestClose_RefusesWhatComesAfterwards(t *testing.T) {
	addr := servers.Redis(t)
	client, err := rueidis.NewClient(soloOption(addr))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	c := New(client, false)
	if err := c.Start(t.Context(), testChannel, newTeller()); err != nil {
		t.Fatal(err)
	}
	mustCall(t, c, echoCall("x"))
	for range 2 {
		if err := c.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	call := echoCall("x")
	for _, call := range []conn.Call{call, {Script: echoScript, Args: call.Args, Replicas: 1}} {
		if r := c.Call(t.Context(), &call); !isRefused(r.Err) || !errors.Is(r.Err, driver.ErrClosed) {
			t.Errorf("a call: %+v", r)
		}
		for _, r := range runBatch(t, c, []conn.Call{call}) {
			if !isRefused(r.Err) || !errors.Is(r.Err, driver.ErrClosed) {
				t.Errorf("a batch: %+v", r)
			}
		}
	}
	if err := client.Do(t.Context(), client.B().Ping().Build()).Error(); err != nil {
		t.Errorf("a client that is not the Conn's own, after Close: %v", err)
	}
	eventually(t, "the server to know that nobody listens", func() bool {
		return adminDo(t, addr, "PUBSUB", "NUMSUB", testChannel) == "["+testChannel+" 0]"
	})
}

// runBatch runs a batch and returns the replies. It fails if one is missing or comes twice.
func runBatch(t *testing.T, c conn.Conn, calls []conn.Call) []conn.Reply {
	t.Helper()
	return runBatchWithin(t.Context(), t, c, calls)
}

func runBatchWithin(ctx context.Context, t *testing.T, c conn.Conn, calls []conn.Call) []conn.Reply {
	t.Helper()
	replies := make([]conn.Reply, len(calls))
	times := make([]atomic.Int32, len(calls))
	c.Batch(ctx, calls, func(i int, r conn.Reply) {
		replies[i] = r
		times[i].Add(1)
	})
	for i := range times {
		if n := times[i].Load(); n != 1 {
			t.Fatalf("call %d of the batch is done %d times", i, n)
		}
	}
	return replies
}
