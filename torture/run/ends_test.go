package run

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/torture/register"
	"github.com/interlock-go/interlock/torture/target"
	"github.com/interlock-go/interlock/torture/worker"
)

// What the client announces and asks arrives, its answer does not, and the connection ends; the next one answers again.
// Nothing is counted of which nothing was asked.
func TestLoseEnds_AnAnnouncedRequestArrivesAndIsNotAnswered(t *testing.T) {
	heard := make(chan byte, 1)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() { // ends with the listener
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { // ends with the connection
				defer func() { _ = c.Close() }()
				for b := make([]byte, 1); ; {
					if _, err := io.ReadFull(c, b); err != nil {
						return
					}
					heard <- b[0]
					if _, err := c.Write(b); err != nil {
						return
					}
				}
			}()
		}
	}()
	reg, err := register.Listen(t.Context(), t.TempDir(), "127.0.0.1", 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = reg.Close() })
	client, err := register.Dial(t.Context(), reg.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	way := servers.NewProxy(t, l.Addr().String())
	// a lease so long that the answer is not lost for less than the request takes on a busy machine
	n := &nemesis{run: &run{Config: &Config{Target: &target.Target{Lease: 20 * time.Second}}, register: reg}}
	victim := &process{links: links{way}, job: worker.Job{Proc: 1}}

	type lost struct {
		ends map[register.Ending]int
		err  error
	}
	lose := func(ctx context.Context) chan lost {
		done := make(chan lost, 1)
		go func() { // ends with ctx
			ends, err := n.loseEnds(ctx, rand.New(rand.NewPCG(1, 1)), time.Hour, victim)
			done <- lost{ends, err}
		}()
		return done
	}
	ctx, end := context.WithCancel(t.Context())
	done := lose(ctx)
	for asked := false; !asked; {
		c, err := net.Dial("tcp", way.Addr())
		if err != nil {
			t.Fatal(err)
		}
		answers := func() error {
			if _, err := c.Write([]byte{1}); err != nil {
				return err
			}
			<-heard // it has arrived in any case
			_, err := c.Read(make([]byte, 1))
			return err
		}
		if err := answers(); err != nil {
			t.Fatalf("nothing was announced: %v", err)
		}
		if err := client.Announce(1, register.Converts); err != nil {
			t.Fatal(err)
		}
		asked = answers() != nil // else nobody had begun to listen
		_ = c.Close()
	}
	c := answered(t, way, heard)
	_ = c.Close()
	end()
	if got := <-done; got.err != nil || got.ends[register.Converts] != 1 || len(got.ends) != 1 {
		t.Errorf("lost %v, %v; want one conversion", got.ends, got.err)
	}

	short, end := context.WithCancel(t.Context())
	end()
	if got := <-lose(short); !errors.Is(got.err, target.ErrNothing) {
		t.Errorf("nothing was announced: %v, %v", got.ends, got.err)
	}
	if err := client.Announce(1, register.Releases); err != nil { // nobody listens any more
		t.Error(err)
	}
}

// answered is a connection on which something was answered, after as many tries as it takes.
func answered(t *testing.T, p *servers.Proxy, heard <-chan byte) net.Conn {
	t.Helper()
	for {
		c, err := net.Dial("tcp", p.Addr())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte{1}); err == nil {
			if _, err := c.Read(make([]byte, 1)); err == nil {
				<-heard
				return c
			}
		}
		_ = c.Close()
		if t.Context().Err() != nil {
			t.Fatal("nothing is answered any more")
		}
	}
}
