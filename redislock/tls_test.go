package redislock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/locktest"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/redislock"
	"github.com/redis/rueidis"
)

// encrypted is a deployment that speaks TLS only.
type encrypted struct {
	url    string
	client rueidis.ClientOption // of a program that makes the client itself

	// change has clients connect to another server for the lock of that name.
	change func(t *testing.T, name string)
}

func encryptedSentinel(t *testing.T) *encrypted {
	s := servers.RedisSentinel(t, 1, &servers.RedisOptions{TLS: true})
	n := s.Nodes()[0]
	return &encrypted{
		url: withQuery(withQuery(sentinelURL(s), "tls", "true"), "ca", n.CAFile()),
		client: rueidis.ClientOption{
			InitAddress: s.Sentinels(), TLSConfig: n.TLS(),
			Sentinel: rueidis.SentinelOption{MasterSet: s.Name(), TLSConfig: n.TLS()},
		},
		change: func(*testing.T, string) { s.Failover() },
	}
}

func encryptedCluster(t *testing.T) *encrypted {
	c := servers.RedisCluster(t, 3, 0, &servers.RedisOptions{TLS: true})
	n := c.Nodes()[0]
	return &encrypted{
		url:    withQuery(withQuery(redisURL("redis+cluster", n.Addr()), "tls", "true"), "ca", n.CAFile()),
		client: rueidis.ClientOption{InitAddress: []string{n.Addr()}, TLSConfig: n.TLS()},
		change: func(_ *testing.T, name string) {
			slot := lockSlot(c, name)
			m := c.Migrate(slot, elsewhere(c, slot))
			m.MoveKeys()
			m.Finish()
		},
	}
}

func TestTLS_LocksPassBetweenClientsAndOutlastAChangeOfServers(t *testing.T) {
	t.Parallel() // most of it waits
	for name, start := range map[string]func(t *testing.T) *encrypted{
		"UnderSentinel": encryptedSentinel, "InACluster": encryptedCluster,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := start(t)
			watch := locktest.NewNews()
			o := &interlock.Options{Lease: failoverLease, Renewal: 200 * time.Millisecond, Observer: watch.Observer()}
			clients := []*interlock.Client{openLocks(t, e.url, o), e.open(t, o)}
			var held []*interlock.Lease
			for i, c := range clients {
				held = append(held, handsOn(t, c, clients[1-i], fmt.Sprint("lock ", i), watch))
			}
			e.change(t, held[0].Name())
			for len(watch.Renewed) > 0 {
				<-watch.Renewed
			}
			for renewed := map[string]bool{}; len(renewed) < len(held); {
				renewed[receive(t, "the holds to be renewed after the change", watch.Renewed)] = true
			}
			for i, l := range held {
				if err := l.Err(); err != nil {
					t.Errorf("a hold was lost: %v", err)
				}
				mustUnlock(t, l)
				mustUnlock(t, handsOn(t, clients[i], clients[1-i], l.Name(), watch))
			}
		})
	}
}

// open opens a client over one of the program's.
func (e *encrypted) open(t *testing.T, o *interlock.Options) *interlock.Client {
	t.Helper()
	e.client.DisableCache = true
	client, err := rueidis.NewClient(e.client)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	d, err := redislock.Start(patient(t), client, &redislock.Options{Check: redislock.CheckNone})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	c, err := interlock.New(d, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// handsOn takes a lock by one client, and returns the hold of the other, which has waited for it.
func handsOn(t *testing.T, from, to *interlock.Client, name string, watch *locktest.News) *interlock.Lease {
	t.Helper()
	first := mustLock(t, from, name)
	in := make(chan locked, 1)
	ctx := patient(t)
	go func() { // ends with ctx
		l, err := to.Lock(ctx, name)
		in <- locked{l, err}
	}()
	receive(t, "the other to be queued", watch.Queued)
	mustUnlock(t, first)
	got := receive(t, "the other to get in", in)
	if got.err != nil {
		t.Fatal(got.err)
	}
	if got.lease.Token() <= first.Token() {
		t.Errorf("token %d after %d", got.lease.Token(), first.Token())
	}
	return got.lease
}
