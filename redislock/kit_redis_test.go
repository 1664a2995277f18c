package redislock

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/longrun"
	"github.com/interlock-go/interlock/internal/pace"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/redis/rueidis"
)

// soloOption is for a server that stands alone.
func soloOption(addr string) rueidis.ClientOption {
	return rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true, ForceSingleClient: true}
}

// clusterOption is for a Cluster.
func clusterOption(c *servers.ClusterRedis) rueidis.ClientOption {
	return rueidis.ClientOption{InitAddress: c.Addrs(), DisableCache: true}
}

// told is what a handler was told: a push, or without a channel a drop.
type told struct {
	link             Link
	channel, message string
}

// teller is a Handler that keeps what it is told.
type teller struct {
	all chan told // larger than any test needs
}

func newTeller() *teller { return &teller{make(chan told, 100_000)} }

func (h *teller) Pushed(l Link, channel, message string) { h.all <- told{l, channel, message} }
func (h *teller) Dropped(l Link)                         { h.all <- told{link: l} }
func (h *teller) Resumed(l Link)                         { h.all <- told{link: l} }

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
