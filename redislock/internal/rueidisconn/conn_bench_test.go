package rueidisconn

import (
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/redislock/conn"
)

// BenchmarkRueidis compares calls with the same commands over rueidis's shared connections.
func BenchmarkRueidis(b *testing.B) {
	addr := servers.Redis(b)
	c := start(b, soloOption(addr), newTeller())
	call := conn.Call{Script: incrScript, Keys: []string{"n"}, Args: []string{"a", "b", "c"}}
	if r := c.Call(b.Context(), &call); r.Err != nil {
		b.Fatal(r.Err)
	}
	client := c.client
	for _, way := range []struct {
		name string
		run  func() error
	}{
		{"call", func() error { return c.Call(b.Context(), &call).Err }},
		{"raw", func() error {
			command := client.B().Evalsha().Sha1(incrScript.SHA()).Numkeys(1).Key(call.Keys...).Arg(
				call.Args...).Build()
			_, err := client.Do(b.Context(), command).ToString()
			return err
		}},
	} {
		for _, goroutines := range []int{1, 64, 1024} {
			b.Run(way.name+"/"+strconv.Itoa(goroutines), func(b *testing.B) { inParallel(b, goroutines, way.run) })
		}
	}
}

// inParallel runs f b.N times by so many goroutines.
func inParallel(b *testing.B, goroutines int, f func() error) {
	b.ReportAllocs()
	var left atomic.Int64
	left.Store(int64(b.N))
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			for left.Add(-1) >= 0 {
				if err := f(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}
