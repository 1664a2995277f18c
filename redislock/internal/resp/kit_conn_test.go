package resp

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/longrun"
	"github.com/interlock-go/interlock/internal/pace"
	"github.com/interlock-go/interlock/redislock/conn"
)

// start connects to a server without password. No goroutine may be left when the Conn is closed.
func start(t testing.TB, addr string, heard func(kind, channel, message string)) *Conn {
	t.Helper()
	return open(t, addr, &Options{ClientName: "resp-test"}, heard)
}

// open is start with options.
func open(t testing.TB, addr string, o *Options, heard func(kind, channel, message string)) *Conn {
	t.Helper()
	if heard == nil {
		heard = func(string, string, string) {}
	}
	openConns.Add(1)
	w, _, err := Dial(t.Context(), addr, o, heard)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.Close()
		w.Close()
		if openConns.Add(-1) == 0 {
			noGoroutines(t)
		}
	})
	return w
}

// openConns counts the Conns that are open, whose goroutines cannot be told from others'.
var openConns atomic.Int64

// noGoroutines fails if connections have left goroutines. One that has said that it is done may have to return yet, and
// a test before may have closed a client that was connecting.
func noGoroutines(t testing.TB) {
	t.Helper()
	var left []string
	for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(2 * time.Millisecond) {
		if left = stacksLeft(); len(left) == 0 {
			return
		}
	}
	t.Errorf("goroutines are left after Close:\n%s", strings.Join(left, "\n\n"))
}

// stacksLeft returns the stacks of the goroutines that connections have started.
func stacksLeft() (stacks []string) {
	buf := make([]byte, 8<<20)
	for stack := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		ours := (strings.Contains(stack, "internal/resp.(*Conn)") || strings.Contains(stack, "internal/resp.(*timer)"))
		if _, maker, _ := strings.Cut(stack, "created by"); ours && maker != "" &&
			!strings.Contains(maker, "_test.go") {
			stacks = append(stacks, stack)
		}
	}
	return stacks
}

var (
	echoScript = conn.NewScript(`return ARGV[1]`)
	incrScript = conn.NewScript(`return tostring(redis.call('INCR', KEYS[1]))`)
)

func echoCall(text string) conn.Call { return conn.Call{Script: echoScript, Args: []string{text}} }

func isRefused(err error) bool {
	var refusal *conn.RefusedError
	return errors.As(err, &refusal)
}

// patience is how long something may take that is to happen soon.
const patience = 10 * time.Second

// eventually waits until something is so.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(2 * time.Millisecond) {
		if is() {
			return
		}
	}
	t.Fatalf("not after %v: %s", patience, what)
}

// endsInTime runs f, which waits for a server that hangs, and fails if it does not end with its context. To the
// millisecond that is judged in a long run, which has nothing beside it: other packages may take the processor that
// encrypts 5 MB. In every other run it has ten times the slack, and still less than until the server goes on.
func endsInTime(t *testing.T, name string, slack time.Duration, f func(ctx context.Context) error) {
	t.Helper()
	pace.EndsInTime(t, name, longrun.Of(10*slack, slack), f)
}

// admin runs a command over a connection of its own, and returns the answer as text.
func admin(t testing.TB, addr string, args ...string) string {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	c, _, err := Dial(ctx, addr, &Options{}, func(string, string, string) {})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	value, err := c.Do(ctx, args...)
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return fmt.Sprint(value)
}

// ping is a Conn that sends itself messages over a channel.
type ping struct {
	w    *Conn
	news chan struct{}
}

func newPing(t testing.TB, addr, channel string) *ping {
	t.Helper()
	p := &ping{news: make(chan struct{}, 1)}
	p.w = start(t, addr, func(kind, _, _ string) {
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
