package pglock

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/interlock-go/interlock/driver"
)

// pooler stands between clients and the server, as PgBouncer does: it tells clients numbers of processes of its own
// making. If it shares, all clients have one session of the server, one transaction each in turn.
type pooler struct {
	t      *testing.T
	target string
	shares bool

	mu     sync.Mutex // held for one transaction; guards what follows
	server net.Conn
	hello  []byte // what the server has said to the one session's beginning
	conns  []net.Conn
}

// newPooler starts one before the server at target, and returns its address.
func newPooler(t *testing.T, target string, shares bool) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &pooler{t: t, target: target, shares: shares}
	var all sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close()
		p.mu.Lock()
		for _, c := range p.conns {
			_ = c.Close()
		}
		p.mu.Unlock()
		all.Wait()
	})
	all.Go(func() { // ends with the listener
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.keep(c)
			all.Go(func() { // ends with the client's connection
				defer func() { _ = c.Close() }()
				p.serve(c)
			})
		}
	})
	return l.Addr().String()
}

func (p *pooler) keep(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns = append(p.conns, c)
}

// serve is one client's connection.
func (p *pooler) serve(client net.Conn) {
	startup, err := readStartup(client)
	if err != nil {
		return
	}
	p.mu.Lock()
	server := p.server
	if server == nil || !p.shares {
		server, err = net.Dial("tcp", p.target)
		if err != nil {
			p.mu.Unlock()
			return
		}
		p.conns = append(p.conns, server)
		_, _ = server.Write(startup)
		p.server, p.hello = server, untilReady(server, forged)
	}
	_, _ = client.Write(p.hello)
	p.mu.Unlock()
	if !p.shares {
		go func() { _, _ = io.Copy(server, client); _ = server.Close() }() // ends with the client's connection
		_, _ = io.Copy(client, server)
		return
	}
	p.takeTurns(client, server)
}

// takeTurns forwards one transaction after the other.
func (p *pooler) takeTurns(client, server net.Conn) {
	for {
		var request []byte
		for ready := false; !ready; {
			m, err := readMessage(client)
			if err != nil || m[0] == 'X' {
				return
			}
			request = append(request, m...)
			ready = m[0] == 'Q' || m[0] == 'S'
		}
		p.mu.Lock()
		_, _ = server.Write(request)
		answer := untilReady(server, nil)
		p.mu.Unlock()
		if _, err := client.Write(answer); err != nil {
			return
		}
	}
}

// forged replaces the number of the process that the server tells.
func forged(m []byte) {
	if m[0] == 'K' {
		binary.BigEndian.PutUint32(m[5:], 4242)
	}
}

// untilReady reads messages up to the one that says that the server is ready.
func untilReady(server net.Conn, change func(m []byte)) []byte {
	var all []byte
	for {
		m, err := readMessage(server)
		if err != nil {
			return all
		}
		if change != nil {
			change(m)
		}
		all = append(all, m...)
		if m[0] == 'Z' {
			return all
		}
	}
}

func readStartup(c net.Conn) ([]byte, error) {
	head := make([]byte, 4)
	if _, err := io.ReadFull(c, head); err != nil {
		return nil, err
	}
	all := append(make([]byte, 0, 64), head...)
	all = append(all, make([]byte, binary.BigEndian.Uint32(head)-4)...)
	_, err := io.ReadFull(c, all[4:])
	return all, err
}

func readMessage(c net.Conn) ([]byte, error) {
	head := make([]byte, 5)
	if _, err := io.ReadFull(c, head); err != nil {
		return nil, err
	}
	all := append(make([]byte, 0, 64), head...)
	all = append(all, make([]byte, binary.BigEndian.Uint32(head[1:])-4)...)
	_, err := io.ReadFull(c, all[5:])
	return all, err
}

func TestPooler_ThatSharesSessions_IsRefused(t *testing.T) {
	n := sharedServer(t)
	addr := newPooler(t, n.Addr(), true)
	_, err := New(t.Context(), configOf(t, addr), &Options{Table: ownTable()})
	if !errors.Is(err, errShares) {
		t.Fatalf("behind a pooler that shares sessions New says %v", err)
	}
	if !strings.Contains(err.Error(), "pool_mode = session") {
		t.Errorf("the error does not say what to do: %v", err)
	}
}

func TestPooler_WithASessionForEachClient_IsAWarningAndLocksWork(t *testing.T) {
	n := sharedServer(t)
	addr := newPooler(t, n.Addr(), false)
	var logged bytes.Buffer
	o := Options{Table: ownTable(), Logger: slog.New(slog.NewTextHandler(&logged, nil))}
	d := open(t.Context(), t, addr, o)
	defer func() { _ = d.Close() }()
	if !strings.Contains(logged.String(), "pooler") {
		t.Errorf("nothing is said of the pooler: %s", logged.String())
	}
	level := driver.Level("")
	for _, f := range d.Diagnose(t.Context()) {
		if f.Check == "pooler" {
			level = f.Level
		}
	}
	if level != driver.LevelWarn {
		t.Errorf("the doctor says %q of the pooler, want a warning", level)
	}
	r := request("x", "1")
	acquire(t, d, r)
	release(t, d, r)
}

func TestPooler_IsNotLookedForWithoutChecks(t *testing.T) {
	n := sharedServer(t)
	addr := newPooler(t, n.Addr(), true)
	d, err := New(t.Context(), configOf(t, addr), &Options{Table: ownTable(), Check: CheckNone})
	if err != nil {
		t.Fatal(err)
	}
	_ = d.Close()
}
