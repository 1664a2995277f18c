package redislock_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redislock"
	"github.com/redis/rueidis"
)

// The same over a client that the program has already, which connects in its own way.
func TestHung_OverAClientOfTheProgram_EveryOperationReturnsWithItsContext(t *testing.T) {
	for name, start := range map[string]func(t testing.TB) *hung{
		"AServerThatIsStopped":   hungServer,
		"EveryNodeUnderSentinel": hungSentinel,
		"EveryNodeOfACluster":    hungCluster,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := start(t)
			client := clientOf(t, h.url)
			d, err := redislock.Start(patient(t), client, nil)
			if err != nil {
				t.Fatal(err)
			}
			c, err := interlock.New(d, nil)
			if err != nil {
				t.Fatal(err)
			}
			var leases []*interlock.Lease
			for i := range hungTries {
				leases = append(leases, mustLock(t, c, fmt.Sprint("unlock", i)))
			}
			h.hang(t)
			for _, call := range []hungCall{
				{"Lock", func(ctx context.Context, try int) error {
					return second(c.Lock(ctx, fmt.Sprint("new", try)))
				}},
				{"TryLock", func(ctx context.Context, try int) error {
					return second(c.TryLock(ctx, fmt.Sprint("try", try)))
				}},
				{"Unlock", func(ctx context.Context, try int) error { return leases[try].Unlock(ctx) }},
				{"Extend", func(ctx context.Context, _ int) error {
					return leases[hungTries-1].Extend(ctx, time.Minute)
				}},
				{"Break", func(ctx context.Context, _ int) error { return c.Break(ctx, "mutex", "unlock0", 1) }},
				{"Locks", func(ctx context.Context, _ int) error {
					for _, err := range c.List(ctx, "") {
						return err
					}
					return nil
				}},
				{"Start", func(ctx context.Context, _ int) error {
					_, err := redislock.Start(ctx, client, nil)
					return err
				}},
			} {
				endsInTime(t, call)
			}
			h.goOn(t)
			if err := c.Close(); err != nil {
				t.Errorf("Close, when everybody answers again: %v", err)
			}
			_ = d.Close()
		})
	}
}

// clientOf returns a client as a program makes one for the servers of a URL.
func clientOf(t testing.TB, raw string) rueidis.Client {
	t.Helper()
	u, err := driver.ParseURL(raw)
	if err != nil {
		t.Fatal(err)
	}
	option := rueidis.ClientOption{InitAddress: u.Hosts, DisableCache: true}
	if u.Scheme == "redis+sentinel" {
		option.Sentinel = rueidis.SentinelOption{MasterSet: strings.Trim(u.Path, "/")}
	}
	client, err := rueidis.NewClient(option)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}
