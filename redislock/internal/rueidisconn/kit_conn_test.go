package rueidisconn

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/longrun"
	"github.com/interlock-go/interlock/internal/pace"
	"github.com/interlock-go/interlock/redislock/conn"
	"github.com/interlock-go/interlock/redislock/internal/conntest"
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

// What the tests of every Conn have in common.
type told = conntest.Told

var (
	pushed     = conntest.Push
	newTeller  = conntest.NewTeller
	nodesOf    = conntest.NodesOf
	isRefused  = conntest.IsRefused
	eventually = conntest.Eventually
)

// leaks watches the goroutines of rueidis, of its links and of the Conn.
var leaks = conntest.Leaks{Ours: func(stack string) bool {
	return strings.Contains(stack, "rueidisconn.(*") || strings.Contains(stack, "internal/resp.(*") ||
		strings.Contains(stack, "redis/rueidis.")
}}

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
	leaks.Opened(t)
	client, err := rueidis.NewClient(option)
	if err != nil {
		t.Fatal(err)
	}
	c := New(client, true)
	if *overResp && !option.AlwaysRESP2 {
		c.respOpts = respOptions(&option, nil)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		leaks.Closed()
	})
	return c
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

// endsInTime runs f, which waits for a server that hangs, and fails if it does not end with its context. To the
// millisecond that is judged in a long run, which has nothing beside it: other packages may take the processor that
// encrypts 5 MB. In every other run it has ten times the slack, and still less than until the server goes on.
func endsInTime(t *testing.T, name string, slack time.Duration, f func(ctx context.Context) error) {
	t.Helper()
	pace.EndsInTime(t, name, longrun.Of(10*slack, slack), f)
}
