package run

import (
	"errors"
	"io"
	"net"
	"testing"

	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/torture/target"
)

// A client that does not come to the server that it is steered to would make the fault one that was not done, and its
// ways are as before then.
func TestSteer_AClientThatDoesNotCome_IsToldOf(t *testing.T) {
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = echo.Close() })
	go func() { // ends with the listener
		for {
			c, err := echo.Accept()
			if err != nil {
				return
			}
			go func() { // ends with the connection
				_, _ = io.Copy(c, c)
				_ = c.Close()
			}()
		}
	}()
	client := new(servers.Member)
	ways := links{servers.NewProxy(t, echo.Addr().String()), servers.NewProxy(t, echo.Addr().String())}
	r := &run{
		engine: &target.Instance{Addrs: []string{"first:1", "second:1"}},
		crew:   []*process{{}, {member: client, links: ways}},
	}
	if end, err := r.steer(client, "second:1"); !errors.Is(err, target.ErrNothing) || end != nil {
		t.Errorf("nobody came to the second server: %v", err)
	}
	for i, p := range ways {
		c := dialed(t, p)
		if i == 0 {
			continue
		}
		end, err := r.steer(client, "second:1")
		if err != nil {
			t.Fatalf("the client is connected to the second server: %v", err)
		}
		if c, err := net.Dial("tcp", ways[0].Addr()); err == nil {
			_ = c.Close()
			t.Error("the first server is reached while the client is steered to the second")
		}
		end()
		_ = c.Close()
	}
	dialed(t, ways[0])
}

// dialed is a connection through the proxy, on which something has come back.
func dialed(t *testing.T, p *servers.Proxy) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := c.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return c
}
