package servers

import (
	"context"
	"io"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// asks reports whether one member gets an answer from the server of another: within a moment, unless one is expected.
func asks(t *testing.T, from *Member, of *RedisNode, expected bool) bool {
	t.Helper()
	ctx := bounded(t)
	if !expected {
		brief, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		defer cancel()
		ctx = brief
	}
	var err error
	from.room.do(func() { err = pingRedis(ctx, of.Addr()) })
	return err == nil
}

func TestNetwork_PartsHearThemselvesAlone(t *testing.T) {
	t.Parallel()
	n := NewNetwork(t)
	a, b := RedisServer(t, &RedisOptions{Network: n}), RedisServer(t, &RedisOptions{Network: n})
	client := n.Join(t)
	look := func(when string, toA, toB bool) {
		t.Helper()
		if got := asks(t, client, a, toA); got != toA {
			t.Errorf("%s the client gets an answer of a: %v", when, got)
		}
		if got := asks(t, client, b, toB); got != toB {
			t.Errorf("%s the client gets an answer of b: %v", when, got)
		}
		for _, s := range []*RedisNode{a, b} {
			if err := pingRedis(bounded(t), s.Addr()); err != nil {
				t.Errorf("%s this process: %v", when, err)
			}
		}
	}
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	look("at first", true, true)
	do(n.Split([]*Member{a.Member(), client}, []*Member{b.Member()}))
	look("beside a", true, false)
	do(n.Split([]*Member{a.Member(), client}, []*Member{b.Member()}))
	look("beside a once more", true, false)
	do(n.Split([]*Member{a.Member()}, []*Member{b.Member(), client}))
	look("beside b", false, true)
	do(n.Cut([]*Member{b.Member()}, []*Member{client}))
	look("with answers lost", true, false)
	do(n.Heal())
	look("healed", true, true)
}

// What is sent into a cut is lost without a word, and arrives when it is sent again after it.
func TestNetwork_ACutIsSilentAndConnectionsOutlastIt(t *testing.T) {
	t.Parallel()
	n := NewNetwork(t)
	s := RedisServer(t, &RedisOptions{Network: n})
	client := n.Join(t)
	var c *RedisConn
	var err error
	client.room.do(func() { c, err = DialRedis(bounded(t), s.Addr(), nil) })
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := n.Split([]*Member{client}, []*Member{s.Member()}); err != nil {
		t.Fatal(err)
	}
	if err := c.Send(bounded(t), "PING"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if answer, err := c.Receive(ctx); !timedOut(err) {
		t.Fatalf("through the cut: %v, %v", answer, err)
	}
	if err := n.Heal(); err != nil {
		t.Fatal(err)
	}
	if answer, err := c.Receive(bounded(t)); err != nil || answer != "PONG" {
		t.Errorf("after it: %v, %v", answer, err)
	}
}

func timedOut(err error) bool {
	return err != nil && strings.Contains(err.Error(), "deadline exceeded")
}

// A member's processes hear this one, and nothing is left of a network that has ended.
func TestNetwork_EndsWithTheTest(t *testing.T) {
	t.Parallel()
	var name, host string
	t.Run("it", func(t *testing.T) {
		n := NewNetwork(t)
		host = n.Host()
		name = strings.Replace(strings.TrimSuffix(host, ".2"), "198.18.", "il-", 1)
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", net.JoinHostPort(host, "0"))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		_, port, _ := net.SplitHostPort(l.Addr().String())
		cmd := exec.CommandContext(t.Context(), "bash", "-c", "echo hello >/dev/tcp/"+host+"/"+port)
		if err := n.Join(t).Start(cmd); err != nil {
			t.Fatal(err)
		}
		conn, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if said, err := io.ReadAll(conn); err != nil || string(said) != "hello\n" {
			t.Errorf("it said %q, %v", said, err)
		}
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	if name == "" {
		t.Skip("there can be no network here")
	}
	err := poll(bounded(t), func(context.Context) error {
		if _, err := net.InterfaceByName(name); err == nil {
			return staysError(name)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

type staysError string

func (e staysError) Error() string { return "the interface " + string(e) + " is still there" }

func TestDisk_IsFullAndFreeAgain(t *testing.T) {
	t.Parallel()
	d := NewDisk(t, 8)
	s := RedisServer(t, &RedisOptions{Disk: d, Config: map[string]string{"appendonly": "yes"}})
	want(t, s, "OK", "SET", "k", "v")
	if err := d.Fill(); err != nil {
		t.Fatal(err)
	}
	err := poll(bounded(t), func(ctx context.Context) error {
		if _, err := s.Do(ctx, "SET", "k", "w"); err == nil {
			return staysError("room")
		}
		return nil
	})
	if err != nil {
		t.Errorf("on a full disk: %v", err)
	}
	if err := d.Fill(); err != nil {
		t.Error(err)
	}
	if err := d.Free(); err != nil {
		t.Fatal(err)
	}
	if !s.Alive() {
		s.Restart()
	}
	if err := poll(bounded(t), func(ctx context.Context) error {
		_, err := s.Do(ctx, "SET", "k", "x")
		return err
	}); err != nil {
		t.Errorf("with room again: %v", err)
	}
	if err := d.Free(); err != nil {
		t.Error(err)
	}
}

// plainPing asks a Redis over a connection, and closes it.
func plainPing(c net.Conn, err error) error {
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	_, err = io.WriteString(c, "PING\r\n")
	if err == nil {
		_, err = io.ReadFull(c, make([]byte, len("+PONG\r\n")))
	}
	return err
}

// A proxy at a member is for the member's processes, and behind the same cuts as they.
func TestNetwork_AProxyAtAMemberIsCutOffWithIt(t *testing.T) {
	t.Parallel()
	n := NewNetwork(t)
	s := RedisServer(t, &RedisOptions{Network: n})
	client := n.Join(t)
	p := NewProxyAt(t, client, s.Addr())
	ping := func(from *Member) error { return plainPing(from.dial(t.Context(), p.Addr())) }
	if err := ping(client); err != nil {
		t.Fatal(err)
	}
	if ping(n.Join(t)) == nil {
		t.Error("another member hears it")
	}
	if err := n.Split([]*Member{client}, []*Member{s.Member()}); err != nil {
		t.Fatal(err)
	}
	if ping(client) == nil {
		t.Error("it passes what the cut loses")
	}
	p.BlackHole(BothWays)
	if err := n.Heal(); err != nil {
		t.Fatal(err)
	}
	if ping(client) == nil {
		t.Error("it passes what it holds")
	}
	p.Pass()
	if err := ping(client); err != nil {
		t.Error(err)
	}
}

// A proxy in a server's place has its connections without anybody being told of it, for the
// processes of one member alone.
func TestNetwork_AProxyInPlaceIsFoundAtTheServersAddress(t *testing.T) {
	t.Parallel()
	n := NewNetwork(t)
	s, other := RedisServer(t, &RedisOptions{Network: n}), RedisServer(t, &RedisOptions{Network: n})
	client, beside := n.Join(t), n.Join(t)
	proxies := []*Proxy{NewProxyInPlace(t, client, s.Addr()), NewProxyInPlace(t, client, other.Addr())}
	if got := proxies[0].Addr(); got != s.Addr() {
		t.Errorf("it is at %s, and the server at %s", got, s.Addr())
	}
	ping := func(from *Member, to *RedisNode) error {
		var c net.Conn
		var err error
		from.room.do(func() { c, err = net.Dial("tcp", to.Addr()) }) // as a process of the member does
		return plainPing(c, err)
	}
	want := func(when string, from *Member, to *RedisNode) {
		t.Helper()
		if err := ping(from, to); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
	want("at first", client, s)
	want("the other server", client, other)
	want("who has no proxy", beside, s)
	for _, p := range proxies {
		if _, all := p.Connections(); all != 1 {
			t.Errorf("%d connections, want one, which is the client's", all)
		}
	}
	proxies[0].BlackHole(BothWays)
	if ping(client, s) == nil {
		t.Error("it passes what it holds")
	}
	want("the other server, when the first cannot be heard", client, other)
	want("who has no proxy then", beside, s)
	proxies[0].Pass()
	if err := n.Split([]*Member{client}, []*Member{s.Member()}); err != nil {
		t.Fatal(err)
	}
	if ping(client, s) == nil {
		t.Error("it passes what the cut loses")
	}
	if err := n.Heal(); err != nil {
		t.Fatal(err)
	}
	want("after the cut", client, s)
}
