package servers

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// far is a server that sends back what it is sent, and tells what it has received.
type far struct {
	addr     string
	got      chan string // what each read returned, "EOF" at the end, or the error
	accepted atomic.Int64
}

func newFar(t *testing.T) *far {
	t.Helper()
	l, err := net.Listen("tcp", host+":0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	f := &far{addr: l.Addr().String(), got: make(chan string, 100)}
	go func() { // ends with l
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			f.accepted.Add(1)
			go f.echo(conn) // ends with the proxy
		}
	}()
	return f
}

func (f *far) echo(conn net.Conn) {
	defer conn.Close()
	b := make([]byte, 100)
	for {
		n, err := conn.Read(b)
		if n > 0 {
			f.got <- string(b[:n])
			_, _ = conn.Write(b[:n])
		}
		if err != nil {
			f.got <- ending(err)
			return
		}
	}
}

// ending names the end of a connection.
func ending(err error) string {
	switch {
	case errors.Is(err, io.EOF):
		return "EOF"
	case errors.Is(err, syscall.ECONNRESET):
		return "reset"
	default:
		return err.Error()
	}
}

// near is a client of the proxy.
type near struct {
	t *testing.T
	*net.TCPConn
}

func newNear(t *testing.T, p *Proxy) near {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return near{t, conn.(*net.TCPConn)}
}

func (n near) say(s string) {
	n.t.Helper()
	if _, err := io.WriteString(n, s); err != nil {
		n.t.Fatal(err)
	}
}

// hear fails unless the next bytes, or the end, are those.
func (n near) hear(want string) {
	n.t.Helper()
	_ = n.SetReadDeadline(time.Now().Add(10 * time.Second))
	b := make([]byte, len(want))
	_, err := io.ReadFull(n, b)
	got := string(b)
	if err != nil {
		got = ending(err)
	}
	if got != want {
		n.t.Fatalf("the client hears %q, want %q", got, want)
	}
}

// echoes fails unless the server sends back what it is told.
func (n near) echoes(s string) {
	n.t.Helper()
	n.say(s)
	n.hear(s)
}

// silent fails if anything is heard within a moment. What a proxy lets through by mistake arrives at once.
func (n near) silent() {
	n.t.Helper()
	_ = n.SetReadDeadline(time.Now().Add(30 * time.Millisecond))
	b := make([]byte, 10)
	if m, err := n.Read(b); m > 0 || !errors.Is(err, context.DeadlineExceeded) && !isTimeout(err) {
		n.t.Fatalf("the client hears %q, %v, want nothing", b[:m], err)
	}
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

func (f *far) hears(t *testing.T, want string) {
	t.Helper()
	select {
	case got := <-f.got:
		if got != want {
			t.Fatalf("the server hears %q, want %q", got, want)
		}
	case <-time.After(10 * time.Second):
		t.Fatalf("the server hears nothing, want %q", want)
	}
}

func (f *far) silent(t *testing.T) {
	t.Helper()
	select {
	case got := <-f.got:
		t.Fatalf("the server hears %q, want nothing", got)
	case <-time.After(30 * time.Millisecond):
	}
}

// settle waits until the proxy has that many connections open.
func settle(t *testing.T, p *Proxy, want int) {
	t.Helper()
	err := poll(bounded(t), func(context.Context) error {
		if open, _ := p.Connections(); open != want {
			return errors.New("not yet")
		}
		return nil
	})
	if err != nil {
		open, _ := p.Connections()
		t.Fatalf("%d connections are open, want %d", open, want)
	}
}
