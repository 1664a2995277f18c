package resp

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/internal/longrun"
)

// writeSpy counts how often the deadline of a write is moved while that write is under way. If that happens at the very
// instant of the old one, Go's poller forgets that it was reached ("pretend it has not happened and retry"), and the
// write goes on.
type writeSpy struct {
	net.Conn
	writing, moved atomic.Int64
}

func (s *writeSpy) Write(b []byte) (int, error) {
	s.writing.Add(1)
	defer s.writing.Add(-1)
	return s.Conn.Write(b)
}

func (s *writeSpy) SetWriteDeadline(t time.Time) error {
	if s.writing.Load() > 0 {
		s.moved.Add(1)
	}
	return s.Conn.SetWriteDeadline(t)
}

func TestConn_NobodyMovesTheDeadlineOfAWriteUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer far.Close()
		spy := &writeSpy{Conn: near}
		raw := &socket{Conn: spy}
		w := newConn(raw, raw, nil, func(string, string, string) {})
		var all sync.WaitGroup
		long, end := context.WithCancel(t.Context())
		all.Go(func() { _, _ = w.Do(long, "PING") })
		if _, err := far.Read(make([]byte, 1000)); err != nil { // PING, and nothing after it
			t.Fatal(err)
		}
		synctest.Wait() // it reads
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		if _, err := w.Do(ctx, "PING"); err == nil {
			t.Error("no error")
		}
		if n := spy.moved.Load(); n > 0 {
			t.Errorf("moved %d times", n)
		}
		end()
		w.Close()
		all.Wait()
	})
}

// In virtual time nobody is late by more than a tick or two, whatever the others do.
func TestConn_WithManyAtRandom_NobodyIsLateByMoreThanATick(t *testing.T) {
	for seed := range longrun.Of[uint64](10, 60) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { ticks(t, seed) })
		})
	}
}

func ticks(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	client, server := net.Pipe()
	slow := rnd.IntN(3)
	var gone sync.WaitGroup
	gone.Go(func() {
		rnd := rand.New(rand.NewPCG(seed, 2))
		r := bufio.NewReader(server)
		out := make(chan string, 100000)
		gone.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, 3))
			for s := range out {
				for len(s) > 0 {
					n := 1 + rnd.IntN(len(s))
					if _, err := server.Write([]byte(s[:n])); err != nil {
						return
					}
					s = s[n:]
				}
			}
		})
		defer close(out)
		for {
			args, err := readCommand(r)
			if err != nil {
				return
			}
			switch rnd.IntN(10) {
			case 0, 1:
				time.Sleep(time.Duration(rnd.IntN(150)) * time.Millisecond)
			case 2, 3, 4:
				time.Sleep(time.Duration(rnd.IntN(5)) * time.Millisecond)
			}
			text := args[len(args)-1]
			if rnd.IntN(3) == 0 {
				out <- ">3\r\n$7\r\nmessage\r\n+c\r\n+x\r\n"
			}
			out <- fmt.Sprintf("$%d\r\n%s\r\n", len(text), text)
		}
	})
	news := make(chan struct{}, 1)
	raw := &socket{Conn: client}
	w := newConn(raw, raw, nil, func(kind, _, _ string) {
		if kind == "message" {
			select {
			case news <- struct{}{}:
			default:
			}
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var all sync.WaitGroup
	var done, given atomic.Int64
	for i := range 2 + int(seed%11) {
		all.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(i)+10))
			for n := 0; ctx.Err() == nil; n++ {
				limit := time.Duration(1+rnd.IntN(100)) * time.Millisecond
				if rnd.IntN(5) == 0 {
					limit = 3 * time.Second
				}
				var c context.Context
				var end func()
				if rnd.IntN(2) == 0 {
					c, end = context.WithTimeout(ctx, limit)
				} else {
					c, end = context.WithCancel(ctx)
					time.AfterFunc(limit, end)
				}
				b := time.Now()
				if i%4 != 3 {
					want := fmt.Sprint(i, "-", n)
					v, err := w.Do(c, "ECHO", want)
					if err == nil && v != want {
						t.Errorf("%v for %v", v, want)
					}
					if err == nil {
						done.Add(1)
					} else {
						given.Add(1)
					}
				} else {
					_, _ = w.Await(c, news, b.Add(time.Duration(rnd.IntN(1000))*time.Millisecond))
				}
				if d := time.Since(b) - limit; d > 21*time.Millisecond {
					t.Errorf("seed %d, %d: late by %v", seed, i, d)
				}
				end()
				if slow > 0 {
					time.Sleep(time.Duration(rnd.IntN(40*slow)) * time.Millisecond)
				}
			}
		})
	}
	all.Wait()
	w.mu.Lock()
	if w.trusting != 0 || w.awaiters.first != nil {
		t.Errorf("seed %d: trusting %d, awaiters %v", seed, w.trusting, w.awaiters.first)
	}
	w.mu.Unlock()
	w.Close()
	server.Close()
	gone.Wait()
	if done.Load() == 0 || given.Load() == 0 {
		t.Errorf("seed %d: %d done, %d given up", seed, done.Load(), given.Load())
	}
}
