package redislock

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// spy counts how often the deadline of a write is moved while that write is under way. If that happens at the very instant
// of the old one, Go's poller forgets that it was reached ("pretend it has not happened and retry"), and the write goes on.
type zzSpy struct {
	net.Conn
	writing, moved atomic.Int64
}

func (s *zzSpy) Write(b []byte) (int, error) {
	s.writing.Add(1)
	defer s.writing.Add(-1)
	return s.Conn.Write(b)
}

func (s *zzSpy) SetWriteDeadline(t time.Time) error {
	if s.writing.Load() > 0 {
		s.moved.Add(1)
	}
	return s.Conn.SetWriteDeadline(t)
}

func TestZZReview_NobodyMovesTheDeadlineOfAWriteUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer far.Close()
		spy := &zzSpy{Conn: near}
		raw := &wireSocket{Conn: spy}
		w := newWire(raw, raw, func(string, string, string) {})
		var all sync.WaitGroup
		long, end := context.WithCancel(t.Context())
		all.Go(func() { _, _ = w.do(long, "PING") })
		if _, err := far.Read(make([]byte, 1000)); err != nil { // PING, and nothing after it
			t.Fatal(err)
		}
		synctest.Wait() // it reads
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		if _, err := w.do(ctx, "PING"); err == nil {
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
