package foreign_test

import (
	"context"
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/drivertest"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/redislock"
	"github.com/interlock-go/interlock/redislock/foreign"
	"github.com/redis/rueidis"
)

// Whatever an engine promises holds with the other library's key too, in both forms.
func TestConformance(t *testing.T) { conforms(t, foreign.Redsync()) }

func TestConformance_Redisson(t *testing.T) { conforms(t, foreign.Redisson()) }

func conforms(t *testing.T, f foreign.Format) {
	if drivertest.Apart(t) {
		return
	}
	s := servers.RedisServer(t, nil)
	drivertest.Run(t, drivertest.Harness{
		Open: func(_ context.Context, t *testing.T) driver.Driver { return over(t, s.Addr(), f) },
		Hang: func(*testing.T) func() {
			s.Stop()
			return s.Cont
		},
	})
}

// over returns a driver with a client of its own, which ends with the test.
func over(t *testing.T, addr string, f foreign.Format) driver.Driver {
	t.Helper()
	client := dial(t, addr)
	ours, err := redislock.New(client, nil)
	if err != nil {
		t.Fatal(err)
	}
	return foreign.New(ours, f)
}

func dial(t *testing.T, addr string) rueidis.Client {
	t.Helper()
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}
