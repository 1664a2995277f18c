package rueidisconn

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/pace"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/redislock/conn"
)

func TestLink_ThatIsKilled_IsMadeAnewUnasked(t *testing.T) {
	addr := servers.Redis(t)
	h := newTeller()
	c := start(t, soloOption(addr), h)
	_, last := mustCall(t, c, echoCall("x"))
	for range 3 {
		adminDo(t, addr, "CLIENT", "KILL", "TYPE", "pubsub")
		h.Want(t, told{Link: last})                // it broke
		h.Want(t, told{Link: last, Resumed: true}) // there is a new one
		adminDo(t, addr, "PUBLISH", testChannel, "news")
		_, link := mustCall(t, c, echoCall("x"))
		if link == last {
			t.Errorf("link %d is used again", link)
		}
		h.Want(t, pushed(link, testChannel, "news"))
		last = link
	}
	h.None(t)
}

func TestLink_WithRESP2_ThatIsKilled_IsMadeAnew(t *testing.T) {
	addr := servers.Redis(t)
	option := soloOption(addr)
	option.AlwaysRESP2 = true
	for _, kind := range []string{"pubsub", "normal"} {
		h := newTeller()
		c := start(t, option, h)
		adminDo(t, addr, "CLIENT", "KILL", "TYPE", kind)
		call := echoCall("x")
		// Nobody sees the end of a connection without hooks before the next command.
		eventually(t, "calls to succeed", func() bool { return c.Call(t.Context(), &call).Err == nil })
		h.Want(t, told{})
		h.Want(t, told{Resumed: true})
		mustCall(t, c, conn.Call{Script: pushScript, Args: []string{testChannel, "news"}})
		h.Want(t, pushed(0, testChannel, "news"))
	}
}

func TestCall_OverAConnectionThatIsReset_LeavesTheOutcomeOpenOrRepeatsNothing(t *testing.T) {
	addr := servers.Redis(t)
	proxy := servers.NewProxy(t, addr)
	c := start(t, soloOption(proxy.Addr()), newTeller())
	var called, open atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	for range 32 {
		callers.Go(func() {
			for ctx.Err() == nil {
				r := c.Call(t.Context(), &conn.Call{Script: incrScript, Keys: []string{"n"}})
				switch {
				case r.Err == nil:
					called.Add(1)
				case !isRefused(r.Err):
					open.Add(1)
				}
			}
		})
	}
	for range 10 {
		n := called.Load()
		eventually(t, "calls to succeed", func() bool { return called.Load() > n+100 })
		proxy.Reset()
	}
	cancel()
	callers.Wait()
	ran, err := strconv.ParseInt(adminDo(t, addr, "GET", "n"), 10, 64)
	if err != nil || ran < called.Load() || ran > called.Load()+open.Load() {
		t.Errorf("%d calls succeeded and %d are open, but %d ran (%v)", called.Load(), open.Load(), ran, err)
	}
	t.Logf("%d succeeded, %d open, %d ran", called.Load(), open.Load(), ran)
}

func TestCall_WhoseReplyIsLost_LeavesTheOutcomeOpen(t *testing.T) {
	addr := servers.Redis(t)
	proxy := servers.NewProxy(t, addr)
	c := start(t, soloOption(proxy.Addr()), newTeller())
	mustCall(t, c, conn.Call{Script: incrScript, Keys: []string{"n"}}) // so that the server knows the script
	proxy.DropReplies()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	answer := make(chan conn.Reply, 1)
	go func() { answer <- c.Call(ctx, &conn.Call{Script: incrScript, Keys: []string{"n"}}) }()
	eventually(t, "the call to have run", func() bool { return adminDo(t, addr, "GET", "n") == "2" })
	cancel()
	if r := <-answer; !errors.Is(r.Err, context.Canceled) || isRefused(r.Err) {
		t.Errorf("got %+v, want an open outcome", r)
	}
}

func TestCall_WithoutAServer_IsRefusedSoon(t *testing.T) {
	s := servers.RedisServer(t, nil)
	h := newTeller()
	c := start(t, soloOption(s.Addr()), h)
	_, link := mustCall(t, c, echoCall("x"))
	s.Kill()
	h.Want(t, told{Link: link})
	clock := pace.Process()
	for _, call := range []conn.Call{echoCall("x"), {Script: echoScript, Args: []string{"x"}, Replicas: 1}} {
		begin := clock.Now()
		if r := c.Call(t.Context(), &call); !isRefused(r.Err) {
			t.Errorf("got %+v, want a refusal", r)
		}
		if d := clock.Now() - begin; d > time.Second {
			t.Errorf("the refusal took %v", d)
		}
	}
	h.None(t) // not before there is somebody to ask
	s.Restart()
	h.Want(t, told{Link: link, Resumed: true})
	if _, again := mustCall(t, c, echoCall("x")); again == link {
		t.Errorf("link %d is used again", link)
	}
}

func TestEverything_WhileTheServerHangs_EndsWithItsContext(t *testing.T) {
	s := servers.RedisServer(t, nil)
	c := start(t, soloOption(s.Addr()), newTeller())
	fresh := open(t, soloOption(s.Addr()))
	nodes := nodesOf(t, c, 1)
	mustCall(t, c, echoCall("x"))
	s.Stop()
	defer s.Cont()
	call, acked := echoCall("x"), echoCall("x")
	acked.Replicas, acked.ReplicaTimeout = 1, time.Second
	both := make([]conn.Call, 2*mostPipelined)
	for i := range both {
		both[i] = call
	}
	both[0] = acked
	hung := map[string]func(ctx context.Context) error{
		"Call":               func(ctx context.Context) error { return c.Call(ctx, &call).Err },
		"Call with Replicas": func(ctx context.Context) error { return c.Call(ctx, &acked).Err },
		"Batch": func(ctx context.Context) (err error) {
			for _, r := range runBatchWithin(ctx, t, c, both) {
				err = r.Err
			}
			return err
		},
		"Nodes": func(ctx context.Context) error { _, err := c.Nodes(ctx); return err },
		"Do":    func(ctx context.Context) error { _, err := nodes[0].Do(ctx, "PING"); return err },
	}
	endsInTime(t, "Start", 250*time.Millisecond, func(ctx context.Context) error {
		return fresh.Start(ctx, testChannel, newTeller())
	})
	for name, f := range hung {
		endsInTime(t, name, 250*time.Millisecond, f)
		endsInTime(t, name+" again", 250*time.Millisecond, f)
	}
	// More than rueidis could hold for the connection, after which it would hang as long as the server.
	var callers sync.WaitGroup
	for range 1500 {
		callers.Go(func() { endsInTime(t, "one of many Calls", 3*time.Second, hung["Call"]) })
	}
	callers.Wait()
	s.Cont()
	mustCall(t, c, echoCall("x"))
	eventually(t, "the window of the link to be free", func() bool {
		l := c.only.link.Load()
		return l != nil && len(l.window) == 0
	})
}

func TestClose_WhileTheServerHangs_TakesSecondsAtMost(t *testing.T) {
	s := servers.RedisServer(t, nil)
	c := start(t, soloOption(s.Addr()), newTeller())
	mustCall(t, c, echoCall("x"))
	s.Stop()
	defer s.Cont()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	call, acked := echoCall("x"), echoCall("x")
	acked.Replicas, acked.ReplicaTimeout = 1, time.Minute
	c.Call(ctx, &call)
	c.Call(ctx, &acked)
	clock := pace.Process()
	begin := clock.Now()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if d := clock.Now() - begin; d > 5*time.Second {
		t.Errorf("Close took %v", d)
	}
}

func TestClose_InTheMidstOfCalls_EndsThem(t *testing.T) {
	addr := servers.Redis(t)
	for range 5 {
		c := start(t, soloOption(addr), newTeller())
		var callers sync.WaitGroup
		for range 32 {
			callers.Go(func() {
				call := echoCall("x")
				for c.Call(t.Context(), &call).Err == nil {
				}
			})
		}
		mustCall(t, c, echoCall("x"))
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		callers.Wait()
	}
}

// Calls of all kinds from many goroutines, while the connections are killed: whatever succeeds has the right answer.
func TestManyGoroutines_WhileConnectionsAreKilled_GetTheirOwnAnswers(t *testing.T) {
	addr := servers.Redis(t)
	h := newTeller()
	c := start(t, soloOption(addr), h)
	ctx, cancel := context.WithCancel(t.Context())
	var answers atomic.Int64
	var callers sync.WaitGroup
	for g := range 64 { // of more, on a machine that is busy beside, nearly all give up before they are answered
		callers.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				text := fmt.Sprint(g, "-", i)
				short, end := context.WithTimeout(t.Context(), time.Duration(rand.N(40_000))*time.Microsecond)
				call := echoCall(text)
				if i%64 == 63 { // each that is given up costs a connection
					call.Replicas, call.ReplicaTimeout = 1, time.Millisecond
				}
				replies := []conn.Reply{{}}
				if i%8 == 6 {
					replies = runBatchWithin(short, t, c, []conn.Call{call, call})
				} else {
					replies[0] = c.Call(short, &call)
				}
				end()
				for _, r := range replies {
					if r.Err == nil && r.Text != text {
						t.Errorf("%q is answered %q", text, r.Text)
					} else if r.Err == nil {
						answers.Add(1)
					}
				}
			}
		})
	}
	for range 10 {
		n := answers.Load()
		eventually(t, "answers", func() bool { return answers.Load() > n+100 })
		adminDo(t, addr, "CLIENT", "KILL", "TYPE", "pubsub")
		adminDo(t, addr, "SCRIPT", "FLUSH")
	}
	cancel()
	callers.Wait()
	t.Logf("%d answers", answers.Load())
	eventually(t, "the window of the link to be free", func() bool {
		l := c.only.link.Load()
		return l != nil && len(l.window) == 0
	})
}

// Who gives up waiting for a connection must not give up the connection.
func TestConnect_ThatIsSlow_ServesWhoWaitsLonger(t *testing.T) {
	addr := servers.Redis(t)
	proxy := servers.NewProxy(t, addr)
	h := newTeller()
	c := start(t, soloOption(proxy.Addr()), h)
	_, link := mustCall(t, c, echoCall("x"))
	proxy.BlackHole(servers.BothWays)
	proxy.Reset()
	h.Want(t, told{Link: link})
	call := echoCall("x")
	endsInTime(t, "Call", 250*time.Millisecond, func(ctx context.Context) error { return c.Call(ctx, &call).Err })
	answer := make(chan conn.Reply, 1)
	go func() { answer <- c.Call(t.Context(), &call) }()
	<-time.After(10 * time.Millisecond)
	proxy.Pass()
	if r := <-answer; r.Err != nil {
		t.Errorf("got %+v", r)
	}
	h.Want(t, told{Link: link, Resumed: true})
}

func TestStart_WithoutAPoolForConnections_EndsWithItsContext(t *testing.T) {
	if *overResp {
		t.Skip("its own links need no pool")
	}
	option := soloOption(servers.Redis(t))
	option.BlockingPoolSize = 1
	c := open(t, option)
	taken, giveBack := c.client.Dedicate()
	defer giveBack()
	_ = taken
	endsInTime(t, "Start", 250*time.Millisecond, func(ctx context.Context) error {
		return c.Start(ctx, testChannel, newTeller())
	})
}
