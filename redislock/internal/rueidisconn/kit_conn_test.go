package rueidisconn

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/longrun"
	"github.com/interlock-go/interlock/internal/pace"
	"github.com/interlock-go/interlock/redislock/conn"
	"github.com/redis/rueidis"
)

const testChannel = "push:test"

// overResp runs the tests of the rueidis Conn with connections of its own, as URLs have them.
var overResp = flag.Bool("resp", false, "let links connect by themselves")

var (
	echoScript  = conn.NewScript(`return ARGV[1]`)
	incrScript  = conn.NewScript(`return tostring(redis.call('INCR', KEYS[1]))`)
	pushScript  = conn.NewScript(`redis.call('PUBLISH', ARGV[1], ARGV[2]) return 'pushed'`)
	shardScript = conn.NewScript(`redis.call('SPUBLISH', KEYS[1], ARGV[1]) return 'pushed'`)
)

// mostPipelined and patience are those of package conn.
const (
	mostPipelined = 512
	patience      = 2 * time.Second
)

func echoCall(text string) conn.Call { return conn.Call{Script: echoScript, Args: []string{text}} }

// told is what a handler was told: a push, or without a channel a drop.
type told struct {
	link             conn.Link
	channel, message string
}

// teller is a Handler that keeps what it is told.
type teller struct {
	all chan told // larger than any test needs
}

func newTeller() *teller { return &teller{make(chan told, 100_000)} }

func (h *teller) Pushed(l conn.Link, channel, message string) { h.all <- told{l, channel, message} }
func (h *teller) Dropped(l conn.Link)                         { h.all <- told{link: l} }

// want waits for the next thing that is told and compares it.
func (h *teller) want(t *testing.T, want told) {
	t.Helper()
	select {
	case got := <-h.all:
		if got != want {
			t.Fatalf("the handler was told %+v, want %+v", got, want)
		}
	case <-time.After(10 * time.Second):
		t.Fatalf("the handler was not told %+v within 10 s", want)
	}
}

// none fails if there is something that was told.
func (h *teller) none(t *testing.T) {
	t.Helper()
	select {
	case got := <-h.all:
		t.Fatalf("the handler was told %+v, want nothing", got)
	default:
	}
}

// soloOption is for a server that stands alone.
func soloOption(addr string) rueidis.ClientOption {
	return rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true, ForceSingleClient: true}
}

// start opens a client and starts a Conn that is closed with the test.
func start(t testing.TB, option rueidis.ClientOption, h conn.Handler) *Conn {
	t.Helper()
	c := open(t, option)
	if err := c.Start(t.Context(), testChannel, h); err != nil {
		t.Fatalf("Start: %v", err)
	}
	return c
}

// open is start without Start.
func open(t testing.TB, option rueidis.ClientOption) *Conn {
	t.Helper()
	noLeaks(t)
	client, err := rueidis.NewClient(option)
	if err != nil {
		t.Fatal(err)
	}
	c := New(client, true)
	if *overResp && !option.AlwaysRESP2 {
		c.itself = respOptions(&option, nil)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		watched.open--
	})
	return c
}

// watched says what ran before the first Conn that is open was opened. Tests that use it do not run in parallel.
var watched struct {
	open   int
	before map[string]string
}

// noLeaks fails t if goroutines are left when the last Conn has been closed.
func noLeaks(t testing.TB) {
	t.Helper()
	if watched.open == 0 {
		watched.before = clientStacks()
	}
	watched.open++
	t.Cleanup(func() {
		if watched.open > 0 {
			return // goroutines of one Conn cannot be told from those of another
		}
		var left []string
		for range 2000 { // 10 s and more
			left = nil
			for id, stack := range clientStacks() {
				if watched.before[id] == "" {
					left = append(left, stack)
				}
			}
			if len(left) == 0 {
				return
			}
			<-time.After(5 * time.Millisecond)
		}
		t.Errorf("goroutines are left after Close:\n%s", strings.Join(left, "\n\n"))
	})
}

// clientStacks returns the stacks of the goroutines of rueidis and of the Conn, by "goroutine N".
func clientStacks() map[string]string {
	buf := make([]byte, 8<<20)
	all := map[string]string{}
	for stack := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		ours := strings.Contains(stack, "rueidisconn.(*") || strings.Contains(stack, "internal/resp.(*") ||
			strings.Contains(stack, "redis/rueidis.")
		if id, _, ok := strings.Cut(stack, " ["); ok && ours && !strings.Contains(stack, "testing.tRunner") {
			all[id] = stack
		}
	}
	return all
}

// adminDo runs a command over a connection of its own.
func adminDo(t testing.TB, addr string, args ...string) string {
	t.Helper()
	client, err := rueidis.NewClient(soloOption(addr))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	m, err := client.Do(context.WithoutCancel(t.Context()), client.B().Arbitrary(args...).Build()).ToMessage()
	if err != nil && !rueidis.IsRedisNil(err) {
		t.Fatalf("%v: %v", args, err)
	}
	return fmt.Sprint(plain(&m))
}

// mustCall returns the text and the link of a call that must succeed.
func mustCall(t *testing.T, c conn.Conn, call conn.Call) (string, conn.Link) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	r := c.Call(ctx, &call)
	if r.Err != nil {
		t.Fatalf("Call: %v", r.Err)
	}
	return r.Text, r.Link
}

// nodesOf returns the n primaries. Those count that answer within a second, in which a machine under load may not run
// all.
func nodesOf(t *testing.T, c conn.Conn, n int) (nodes []conn.Node) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d nodes to answer", n), func() bool {
		var err error
		nodes, err = c.Nodes(t.Context())
		if len(nodes) > n {
			t.Fatalf("%d nodes, want %d", len(nodes), n)
		}
		return err == nil && len(nodes) == n
	})
	return nodes
}

func isRefused(err error) bool {
	var refusal *conn.RefusedError
	return errors.As(err, &refusal)
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(15 * time.Second); time.Now().Before(end); <-time.After(2 * time.Millisecond) {
		if is() {
			return
		}
	}
	t.Fatalf("not after 15 s: %s", what)
}

// endsInTime runs f, which waits for a server that hangs, and fails if it does not end with its context. To the
// millisecond that is judged in a long run, which has nothing beside it: other packages may take the processor that
// encrypts 5 MB. In every other run it has ten times the slack, and still less than until the server goes on.
func endsInTime(t *testing.T, name string, slack time.Duration, f func(ctx context.Context) error) {
	t.Helper()
	pace.EndsInTime(t, name, longrun.Of(10*slack, slack), f)
}
