package pglock

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/jackc/pgx/v5/pgconn"
)

// The bare calls write the same durable row: compare BenchmarkBare with BenchmarkPair, and BenchmarkBareHandOff with
// BenchmarkHandOff.

// durable returns a server that waits for the disk.
func durable(b *testing.B) *servers.PostgresNode {
	b.Helper()
	return servers.PostgresServer(b, &servers.PostgresOptions{Config: map[string]string{
		"fsync":           "on",
		"max_connections": "400",
	}})
}

const bareMint = `INSERT INTO bare AS t (key, token) VALUES ($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
	ON CONFLICT (key) DO UPDATE SET token = greatest(t.token + 1, excluded.token) RETURNING token`

// bare is a connection that locks without us.
type bare struct{ pg *pgconn.PgConn }

func newBare(b *testing.B, addr string) *bare {
	b.Helper()
	pg, err := pgconn.ConnectConfig(b.Context(), configOf(b, addr))
	if err != nil {
		b.Fatal(err)
	}
	x := &bare{pg}
	if err := pg.Exec(background, "CREATE TABLE IF NOT EXISTS bare (key bigint PRIMARY KEY, token bigint NOT NULL) "+
		"WITH (fillfactor = 50)").Close(); err != nil {
		b.Fatal(err)
	}
	for name, text := range map[string]string{
		"lock": "SELECT pg_advisory_lock($1::bigint)", "mint": bareMint,
		"unlock": "SELECT pg_advisory_unlock($1::bigint)",
	} {
		if _, err := pg.Prepare(background, name, text, nil); err != nil {
			b.Fatal(err)
		}
	}
	b.Cleanup(func() { _ = pg.Close(background) })
	return x
}

func (x *bare) run(b *testing.B, names ...string) {
	for _, name := range names {
		if err := x.pg.ExecPrepared(background, name, [][]byte{int8Value(7)}, binaryFormat,
			binaryFormat).Read().Err; err != nil {
			b.Error(err)
		}
	}
}

func BenchmarkBare(b *testing.B) {
	x := newBare(b, durable(b).Addr())
	for b.Loop() {
		x.run(b, "lock", "mint", "unlock")
	}
}

func openClient(b *testing.B, url string) *interlock.Client {
	b.Helper()
	c, err := interlock.Open(b.Context(), url, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Close() })
	return c
}

func BenchmarkPair(b *testing.B) {
	c := openClient(b, durable(b).URL(nil))
	for b.Loop() {
		l, err := c.Lock(b.Context(), "stock:42")
		if err == nil {
			err = l.Unlock(b.Context())
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}

// handOff has two clients take turns.
func handOff(b *testing.B, turn func(i int)) {
	var all sync.WaitGroup
	b.ResetTimer()
	for i := range 2 {
		all.Go(func() {
			for range b.N / 2 {
				turn(i)
			}
		})
	}
	all.Wait()
}

func BenchmarkBareHandOff(b *testing.B) {
	addr := durable(b).Addr()
	two := []*bare{newBare(b, addr), newBare(b, addr)}
	handOff(b, func(i int) { two[i].run(b, "lock", "mint", "unlock") })
}

func BenchmarkHandOff(b *testing.B) {
	url := durable(b).URL(nil)
	two := []*interlock.Client{openClient(b, url), openClient(b, url)}
	handOff(b, func(i int) {
		l, err := two[i].Lock(context.Background(), "stock:42")
		if err == nil {
			err = l.Unlock(context.Background())
		}
		if err != nil {
			b.Error(err)
		}
	})
}

// BenchmarkCrowd has as many sessions wait for one lock, longer than deadlock_timeout, and measures until all had it.
func BenchmarkCrowd(b *testing.B) {
	for _, n := range []int{100, 300, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			node := servers.PostgresServer(b, &servers.PostgresOptions{Config: map[string]string{
				"fsync":           "on",
				"max_connections": fmt.Sprint(n + 20),
			}})
			d := open(b.Context(), b, node.Addr(), Options{Waits: n})
			defer func() { _ = d.Close() }()
			ops := newAdmin(b, node)
			for round := 0; b.Loop(); round++ {
				first := request("x", fmt.Sprint("first ", round))
				acquire(b, d, first)
				var all sync.WaitGroup
				for i := range n {
					all.Go(func() {
						r := request("x", fmt.Sprint(round, ".", i))
						if _, err := d.Acquire(context.Background(), r); err != nil {
							b.Error(err)
							return
						}
						if err := d.Release(context.Background(), &driver.Release{Key: r.Key, ID: r.ID}); err != nil {
							b.Error(err)
						}
					})
				}
				until(b, time.Minute, func() error {
					return want(ops.one("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"),
						fmt.Sprint(n))
				})
				time.Sleep(1200 * time.Millisecond) // real: past deadlock_timeout, a second
				begin := time.Now()
				release(b, d, first)
				all.Wait()
				b.ReportMetric(float64(time.Since(begin).Microseconds())/float64(n), "µs/waiter")
			}
		})
	}
}
