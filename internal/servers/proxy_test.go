package servers

import (
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestProxy_PassesAndCounts(t *testing.T) {
	t.Parallel()
	f := newFar(t)
	p := NewProxy(t, f.addr)
	a, b := newNear(t, p), newNear(t, p)
	a.echoes("abc")
	b.echoes("de")
	if open, all := p.Connections(); open != 2 || all != 2 {
		t.Errorf("%d connections of %d, want 2 of 2", open, all)
	}
	if err := a.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	a.hear("EOF")
	settle(t, p, 1)
	p.Pass() // waits until the last step is counted
	if n, m := p.Bytes(ToServer), p.Bytes(BothWays); n != 5 || m != 10 {
		t.Errorf("%d bytes to the server, %d in all, want 5 and 10", n, m)
	}
}

func TestProxy_PassesMuchBothWays(t *testing.T) {
	t.Parallel()
	n := RedisServer(t, nil)
	p := NewProxy(t, n.Addr())
	p.Delay(BothWays, time.Millisecond)
	ctx := bounded(t)
	c, err := DialRedis(ctx, p.Addr(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	much := strings.Repeat("0123456789", 1<<20)
	if _, err := c.Do(ctx, "SET", "k", much); err != nil {
		t.Fatal(err)
	}
	if got, err := c.Do(ctx, "GET", "k"); err != nil || got != much {
		t.Errorf("what comes back differs (%v)", err)
	}
}

func TestProxy_BlackHole_HoldsEverythingUntilPass(t *testing.T) {
	t.Parallel()
	f := newFar(t)
	p := NewProxy(t, f.addr)
	old, leaver := newNear(t, p), newNear(t, p)
	old.echoes("1")
	f.hears(t, "1")
	leaver.echoes("2")
	f.hears(t, "2")

	p.BlackHole(BothWays)
	old.say("3")
	young := newNear(t, p)
	young.say("4")
	_ = leaver.Close()
	f.silent(t) // neither bytes nor the end of a connection
	old.silent()
	if n := f.accepted.Load(); n != 2 {
		t.Errorf("the server has %d connections, want 2: the third is made in the dark", n)
	}

	p.Pass()
	old.hear("3")
	young.hear("4")
	settle(t, p, 2)
}

func TestProxy_BlackHole_OneWay(t *testing.T) {
	t.Parallel()
	f := newFar(t)
	p := NewProxy(t, f.addr)
	c := newNear(t, p)
	p.BlackHole(ToClient)
	c.say("1")
	f.hears(t, "1")
	c.silent()
	p.Pass()
	c.hear("1")
	p.BlackHole(ToServer)
	c.say("2")
	f.silent(t)
	p.Pass()
	c.hear("2")
}

func TestProxy_BlackHole_DoesNotWaitForAPeerThatDoesNotRead(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", host+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // nothing is ever accepted, so nothing is read
	p := NewProxy(t, l.Addr().String())
	c := newNear(t, p)
	_ = c.SetWriteDeadline(time.Now().Add(200 * time.Millisecond))
	for err == nil { // until the buffers between are full
		_, err = c.Write(make([]byte, 1<<20))
	}
	held := make(chan struct{})
	go func() {
		defer close(held)
		p.BlackHole(BothWays)
	}()
	select {
	case <-held:
	case <-time.After(5 * time.Second):
		t.Error("BlackHole waits for the server to read")
	}
}

func TestProxy_Delay_IsPerDirectionAndEndsAtOnce(t *testing.T) {
	t.Parallel()
	f := newFar(t)
	p := NewProxy(t, f.addr)
	c := newNear(t, p)
	p.Delay(ToServer, 40*time.Millisecond)
	p.Delay(ToClient, 30*time.Millisecond)
	start := time.Now()
	c.echoes("1")
	if took := time.Since(start); took < 70*time.Millisecond {
		t.Errorf("the reply took %v, want 70ms at least", took)
	}
	f.hears(t, "1")
	p.Delay(BothWays, time.Hour)
	c.say("2")
	f.silent(t)
	p.Delay(BothWays, 0)
	c.hear("2")
}

func TestProxy_DropReplies_LosesThemForGood(t *testing.T) {
	t.Parallel()
	f := newFar(t)
	p := NewProxy(t, f.addr)
	c, idle := newNear(t, p), newNear(t, p)
	p.DropReplies()
	c.say("1")
	f.hears(t, "1") // requests arrive
	c.silent()
	p.Pass()
	c.say("2")
	f.hears(t, "2")
	c.silent() // a reply after a gap would be taken for that to "1"
	idle.say("3")
	idle.hear("3") // this one has lost nothing
	_ = c.Close()
	f.hears(t, "3")
	f.hears(t, "EOF")
	settle(t, p, 1)
}

func TestProxy_Reset_CutsBothEndsAndAcceptsAgain(t *testing.T) {
	t.Parallel()
	f := newFar(t)
	p := NewProxy(t, f.addr)
	c := newNear(t, p)
	c.echoes("1")
	f.hears(t, "1")
	p.Reset()
	c.hear("reset")
	f.hears(t, "reset")
	again := newNear(t, p)
	again.echoes("2")
}

func TestProxy_Refuse_KeepsWhatIsThere(t *testing.T) {
	t.Parallel()
	f := newFar(t)
	p := NewProxy(t, f.addr)
	c := newNear(t, p)
	c.echoes("1")
	for range 50 { // the port must be free at once, each time
		p.Refuse()
		p.Pass()
	}
	p.Refuse()
	c.echoes("2")
	if conn, err := net.Dial("tcp", p.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a new connection: %v, %v", conn, err)
	}
	p.Pass()
	young := newNear(t, p)
	young.echoes("3")
}

func TestProxy_ShowsThatTheServerIsGone(t *testing.T) {
	t.Parallel()
	n := RedisServer(t, nil)
	p := NewProxy(t, n.Addr())
	c := newNear(t, p)
	c.say("PING\r\n")
	c.hear("+PONG\r\n")
	n.Kill()
	c.hear("EOF")
	_ = c.Close()
	// The proxy accepts, and then finds nobody; the client may hear of it before it knows that it was accepted.
	if conn, err := net.Dial("tcp", p.Addr()); err == nil {
		near{t, conn.(*net.TCPConn)}.hear("reset")
		_ = conn.Close()
	} else if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("a new connection: %v", err)
	}
	settle(t, p, 0)
}

func TestProxy_EndsWithTheTest(t *testing.T) {
	t.Parallel()
	f := newFar(t)
	var p *Proxy
	var c near
	w := witnessed(t, func(w *witness) {
		p = NewProxy(w, f.addr)
		c = newNear(t, p)
		c.echoes("1")
		p.BlackHole(BothWays)
		c.say("2")
	})
	for _, f := range w.cleanups {
		f() // waits for the goroutines
	}
	c.hear("reset")
	if open, _ := p.Connections(); open != 0 {
		t.Errorf("%d connections are open after the end", open)
	}
}

func TestProxy_Slice_PassesOneByteAtATime(t *testing.T) {
	t.Parallel()
	p := NewProxy(t, newFar(t).addr)
	c := newNear(t, p)
	c.echoes("1")
	p.Slice(ToClient, time.Millisecond)
	c.say("0123456789")
	for got := ""; len(got) < 10; {
		b := make([]byte, 10)
		n, err := c.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		if got += string(b[:n]); got != "0123456789"[:len(got)] {
			t.Fatalf("heard %q", got)
		}
	}
	p.Pass() // waits until the last step is counted
	if n := p.writes[1].Load(); n < 11 {
		t.Errorf("11 bytes came in %d steps", n)
	}
	c.echoes("2")
}

func TestProxy_HalfReplies_ResetsEachConnectionAfterSoMuch(t *testing.T) {
	t.Parallel()
	p := NewProxy(t, newFar(t).addr)
	old := newNear(t, p)
	old.echoes("123")
	p.HalfReplies(4)
	for _, c := range []near{old, newNear(t, p)} {
		c.echoes("abc")
		c.say("def")
		// the byte may be lost with the rest
		if got, err := io.ReadAll(c); len(got) > 1 || !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("after three bytes of six: %q, %v", got, err)
		}
	}
	p.Pass()
	c := newNear(t, p)
	c.echoes("abcdef")
}

func TestProxy_Limit_ResetsWhatIsTooMuch(t *testing.T) {
	t.Parallel()
	p := NewProxy(t, newFar(t).addr)
	old := newNear(t, p)
	old.echoes("1")
	p.Limit(1)
	old.hear("reset")
	settle(t, p, 0)
	one := newNear(t, p)
	one.echoes("2")
	// the client may hear of the reset before it knows that it was accepted
	if conn, err := net.Dial("tcp", p.Addr()); err == nil {
		near{t, conn.(*net.TCPConn)}.hear("reset")
		_ = conn.Close()
	}
	one.echoes("3")
	p.Pass()
	further := newNear(t, p)
	further.echoes("4")
}
