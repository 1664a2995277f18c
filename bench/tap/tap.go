// Package tap counts what passes between clients and servers.
package tap

import (
	"context"
	"net"
	"strings"
	"sync"
	"sync/atomic"
)

// Taps stand between clients and the servers of an engine, one before each server.
type Taps []*tap

// New puts them before the servers at the addresses, which have commas between them.
func New(addrs string) (Taps, error) {
	var all Taps
	for addr := range strings.SplitSeq(addrs, ",") {
		t, err := newTap(addr)
		if err != nil {
			all.Close()
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

// Addr is where clients reach the servers through the taps.
func (all Taps) Addr() string {
	addrs := make([]string, len(all))
	for i, t := range all {
		addrs[i] = t.addr()
	}
	return strings.Join(addrs, ",")
}

// warmUps is how often something is done before it counts: connections are made, and what is loaded once is loaded.
const warmUps = 8

// Each warms up, and then returns the round trips of one of n times that something is done. It is done that often
// because clients also say now and then that they live.
func (all Taps) Each(n int, do func() error) (float64, error) {
	several := func(n int) (err error) {
		for range n {
			if err = do(); err != nil {
				break
			}
		}
		return err
	}
	if err := several(warmUps); err != nil {
		return 0, err
	}
	sum, err := all.roundTripsIn(func() error { return several(n) })
	return float64(sum) / float64(n), err
}

// roundTripsIn is of the server that was asked most often: what several are asked at the same time is waited for
// together.
func (all Taps) roundTripsIn(do func() error) (most int64, err error) {
	before := make([]int64, len(all))
	for i, t := range all {
		before[i] = t.roundTrips.Load()
	}
	err = do()
	for i, t := range all {
		most = max(most, t.roundTrips.Load()-before[i])
	}
	return most, err
}

// Heard is how often something came from a server.
func (all Taps) Heard() (sum int64) {
	for _, t := range all {
		sum += t.heard.Load()
	}
	return sum
}

// Close ends all connections through them.
func (all Taps) Close() {
	for _, t := range all {
		t.close()
	}
}

// tap stands between clients and a server, lets everything pass, and counts.
type tap struct {
	listener net.Listener
	target   string

	roundTrips atomic.Int64 // how often a client sent something after it had heard something, and the first time
	heard      atomic.Int64 // how often something came from the server

	mu    sync.Mutex // guards conns and ended
	conns []net.Conn
	ended bool
	all   sync.WaitGroup
}

func newTap(target string) (*tap, error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	t := &tap{listener: l, target: target}
	t.all.Go(t.accept) // ends when the listener is closed
	return t, nil
}

func (t *tap) addr() string { return t.listener.Addr().String() }

func (t *tap) accept() {
	for {
		client, err := t.listener.Accept()
		if err != nil {
			return
		}
		server, err := new(net.Dialer).DialContext(context.Background(), "tcp", t.target)
		if err != nil {
			_ = client.Close() // it sees what it would have seen without a tap
			continue
		}
		if !t.keep(client, server) {
			return
		}
		var asked atomic.Bool // the client was the last to send
		t.all.Go(func() {
			pass(server, client, func() {
				if !asked.Swap(true) {
					t.roundTrips.Add(1)
				}
			})
		})
		t.all.Go(func() {
			pass(client, server, func() {
				asked.Store(false)
				t.heard.Add(1)
			})
		})
	}
}

// keep has close close them, and does so itself if that was called already.
func (t *tap) keep(conns ...net.Conn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.conns = append(t.conns, conns...)
	if t.ended {
		for _, c := range conns {
			_ = c.Close() // nothing was sent yet
		}
	}
	return !t.ended
}

// pass forwards until one side has ended, which ends the other.
func pass(to, from net.Conn, each func()) {
	defer to.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			each()
			if _, err := to.Write(buffer[:n]); err != nil {
				_ = from.Close()
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (t *tap) close() {
	_ = t.listener.Close()
	t.mu.Lock()
	t.ended = true
	for _, c := range t.conns {
		_ = c.Close()
	}
	t.mu.Unlock()
	t.all.Wait()
}
