package redislock

import (
	"context"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// startWire connects to a server without password. No goroutine may be left when the wire is closed.
func startWire(t testing.TB, addr string, heard func(kind, channel, message string)) *wire {
	t.Helper()
	return openWire(t, addr, &wireOptions{ClientName: "wire-test"}, heard)
}

// openWire is startWire with options.
func openWire(t testing.TB, addr string, o *wireOptions, heard func(kind, channel, message string)) *wire {
	t.Helper()
	if heard == nil {
		heard = func(string, string, string) {}
	}
	openWires.Add(1)
	w, _, err := dialWire(t.Context(), addr, o, heard)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.Close()
		w.Close()
		if openWires.Add(-1) == 0 {
			noWireGoroutines(t)
		}
	})
	return w
}

// openWires counts the wires that are open, whose goroutines cannot be told from others'.
var openWires atomic.Int64

// noWireGoroutines fails if wires have left goroutines. One that has said that it is done may have to return yet, and a test before
// may have closed a client that was connecting.
func noWireGoroutines(t testing.TB) {
	t.Helper()
	var left []string
	for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(2 * time.Millisecond) {
		if left = wireStacks(); len(left) == 0 {
			return
		}
	}
	t.Errorf("goroutines are left after Close:\n%s", strings.Join(left, "\n\n"))
}

// wireStacks returns the stacks of the goroutines that wires have started.
func wireStacks() (stacks []string) {
	buf := make([]byte, 8<<20)
	for stack := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		ours := strings.Contains(stack, "redislock.(*wire)")
		if _, maker, _ := strings.Cut(stack, "created by"); ours && maker != "" && !strings.Contains(maker, "_test.go") {
			stacks = append(stacks, stack)
		}
	}
	return stacks
}

// ping is one of two that send each other messages over channels.
type ping struct {
	w    *wire
	news chan struct{}
}

func newPing(t testing.TB, addr, channel string) *ping {
	t.Helper()
	p := &ping{news: make(chan struct{}, 1)}
	p.w = startWire(t, addr, func(kind, _, _ string) {
		if kind == "message" {
			p.news <- struct{}{}
		}
	})
	if err := p.w.subscribe(t.Context(), "subscribe", channel); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *ping) say(to string) error {
	_, err := p.w.do(context.Background(), "PUBLISH", to, "x")
	return err
}

func (p *ping) hear() error {
	_, err := p.w.await(context.Background(), p.news, time.Now().Add(time.Minute))
	return err
}
