package rueidisconn

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/redislock/internal/resp"
	"github.com/redis/rueidis"
)

// BenchmarkRESP compares scripts over a connection of package resp with the same over rueidis: its dedicated connection
// as it is by default (sync), with hooks for pushes as links over it are (link), and its shared ones.
func BenchmarkRESP(b *testing.B) {
	addr := servers.Redis(b)
	w := dialBench(b, addr, func(string, string, string) {})
	client := newRueidisClient(b, addr)
	dedicated, cancel := client.Dedicate()
	defer cancel()
	link := New(newRueidisClient(b, addr), false)
	if err := link.Start(b.Context(), testChannel, newTeller()); err != nil {
		b.Fatal(err)
	}
	defer link.Close()
	call := echoCall("x")
	if _, err := w.Call(b.Context(), &call, resp.InSource); err != nil {
		b.Fatal(err)
	}
	evalsha := func(ctx context.Context, c rueidis.CoreClient) error {
		return c.Do(ctx, client.B().Evalsha().Sha1(echoScript.SHA()).Numkeys(0).Arg(call.Args...).Build()).Error()
	}
	ended, end := context.WithCancel(b.Context())
	defer end()
	for _, bench := range []struct {
		name string
		many bool            // fit for many goroutines
		ctx  context.Context //nolint:containedctx // of one benchmark
		run  func(ctx context.Context) error
	}{
		{"resp", true, context.Background(), func(ctx context.Context) error {
			_, err := w.Call(ctx, &call, resp.ByName)
			return err
		}},
		{"resp with cancellation", true, ended, func(ctx context.Context) error {
			_, err := w.Call(ctx, &call, resp.ByName)
			return err
		}},
		{"rueidis sync", false, context.Background(), func(ctx context.Context) error {
			return evalsha(ctx, dedicated)
		}},
		{"rueidis link", true, ended, func(ctx context.Context) error { return link.Call(ctx, &call).Err }},
		{"rueidis shared", true, context.Background(), func(ctx context.Context) error { return evalsha(ctx, client) }},
	} {
		for _, goroutines := range []int{1, 64} {
			if goroutines > 1 && !bench.many {
				continue
			}
			b.Run(bench.name+"/"+strconv.Itoa(goroutines), func(b *testing.B) {
				inParallel(b, goroutines, func() error { return bench.run(bench.ctx) })
			})
		}
	}
}

// BenchmarkPush measures how long it takes until a push has woken who waits for it, and an answer the same way back,
// and compares it with lists that are waited for over dedicated connections of rueidis.
func BenchmarkPush(b *testing.B) {
	addr := servers.Redis(b)
	b.Run("resp", func(b *testing.B) {
		here, there := newPing(b, addr, "here"), newPing(b, addr, "there")
		go func() { // ends with the connection
			for there.hear() == nil && there.say("here") == nil {
			}
		}()
		b.ResetTimer()
		for range b.N {
			if err := here.say("there"); err != nil {
				b.Fatal(err)
			}
			if err := here.hear(); err != nil {
				b.Fatal(err)
			}
		}
		there.w.Close()
	})
	b.Run("lists", func(b *testing.B) {
		client := newRueidisClient(b, addr)
		here, giveBack := client.Dedicate()
		defer giveBack()
		there, giveBackThere := client.Dedicate()
		defer giveBackThere()
		done := make(chan struct{})
		go func() { // ends with the benchmark
			defer close(done)
			for range b.N {
				popAndPush(b, there, "there", "here", true)
			}
		}()
		b.ResetTimer()
		for range b.N {
			popAndPush(b, here, "here", "there", false)
		}
		<-done
	})
}

func popAndPush(b *testing.B, c rueidis.DedicatedClient, from, to string, popFirst bool) {
	pop := func() {
		if err := c.Do(context.Background(), c.B().Blpop().Key(from).Timeout(0).Build()).Error(); err != nil {
			b.Error(err)
		}
	}
	if popFirst {
		pop()
	}
	if err := c.Do(context.Background(), c.B().Lpush().Key(to).Element("x").Build()).Error(); err != nil {
		b.Error(err)
	}
	if !popFirst {
		pop()
	}
}

func newRueidisClient(t testing.TB, addr string) rueidis.Client {
	t.Helper()
	client, err := rueidis.NewClient(soloOption(addr))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// dialBench connects to a server without password.
func dialBench(t testing.TB, addr string, pushed func(kind, channel, message string)) *resp.Conn {
	t.Helper()
	w, _, err := resp.Dial(t.Context(), addr, &resp.Options{}, pushed)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

// ping is one of two that send each other messages over channels.
type ping struct {
	w    *resp.Conn
	news chan struct{}
}

func newPing(t testing.TB, addr, channel string) *ping {
	t.Helper()
	p := &ping{news: make(chan struct{}, 1)}
	p.w = dialBench(t, addr, func(kind, _, _ string) {
		if kind == "message" {
			p.news <- struct{}{}
		}
	})
	if err := p.w.Subscribe(t.Context(), "subscribe", channel); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *ping) say(to string) error {
	_, err := p.w.Do(context.Background(), "PUBLISH", to, "x")
	return err
}

func (p *ping) hear() error {
	_, err := p.w.Await(context.Background(), p.news, time.Now().Add(time.Minute))
	return err
}
