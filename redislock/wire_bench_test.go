package redislock

import (
	"context"
	"strconv"
	"testing"

	"github.com/interlock-go/interlock/internal/servers"
	"github.com/redis/rueidis"
)

// BenchmarkWire compares scripts over a wire with the same over rueidis: its dedicated connection as it is by default
// (sync), with hooks for pushes as links over it are (link), and its shared ones.
func BenchmarkWire(b *testing.B) {
	addr := servers.Redis(b)
	w := startWire(b, addr, nil)
	client := newRueidisClient(b, addr)
	dedicated, cancel := client.Dedicate()
	defer cancel()
	link := newRueidisConn(newRueidisClient(b, addr), false)
	if err := link.Start(b.Context(), testChannel, newTeller()); err != nil {
		b.Fatal(err)
	}
	defer link.Close()
	call := echoCall("x")
	if _, err := w.call(b.Context(), &call, inSource); err != nil {
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
		{"wire", true, context.Background(), func(ctx context.Context) error { _, err := w.call(ctx, &call, byName); return err }},
		{"wire with cancellation", true, ended, func(ctx context.Context) error { _, err := w.call(ctx, &call, byName); return err }},
		{"rueidis sync", false, context.Background(), func(ctx context.Context) error { return evalsha(ctx, dedicated) }},
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

// BenchmarkPush measures how long it takes until a push has woken who waits for it, and an answer the same way back, and
// compares it with lists that are waited for over dedicated connections of rueidis.
func BenchmarkPush(b *testing.B) {
	addr := servers.Redis(b)
	b.Run("wire", func(b *testing.B) {
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
