package rueidisconn

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/redislock/internal/resp"
)

// Who comes while a try to connect is under way that began when the server was out of reach does not fail with it:
// there is another one.
func TestNode_ATryThatBeganInVainIsNotTheLastForWhoComesLater(t *testing.T) {
	for name, itself := range map[string]bool{"rueidis": false, "resp": true} {
		t.Run(name, func(t *testing.T) {
			p := servers.NewProxy(t, servers.Redis(t))
			option := soloOption(p.Addr())
			c := open(t, option)
			c.respOpts = nil
			if itself {
				c.respOpts = respOptions(&option, nil)
			}
			if err := c.Start(t.Context(), testChannel, newBell()); err != nil {
				t.Fatal(err)
			}
			n := c.only
			mustCall(t, c, echoCall("x"))
			p.BlackHole(servers.BothWays)
			p.Reset()
			begin := time.Now()
			for under := false; !under || n.link.Load() != nil; runtime.Gosched() {
				var err error
				if _, under, err = n.attempt(); err != nil || time.Since(begin) > 5*patience {
					t.Fatalf("nobody tries to connect: %v", err)
				}
			}
			joined := make(chan error, 1)
			go func() { // ends with the test's context
				_, err := n.await(t.Context())
				joined <- err
			}()
			select {
			case <-n.wanted: // it has joined the try, which can only fail
			case <-t.Context().Done():
				t.Fatal("nobody waits for a connection")
			}
			p.Reset()
			p.Pass()
			if err := <-joined; err != nil {
				t.Errorf("who came during a try that failed, and could have made another: %v", err)
			}
		})
	}
}

// Nobody who comes when nothing is under way waits for more than one try.
func TestNode_ATryThatBeganLaterIsFinal(t *testing.T) {
	n := newNode(&Conn{base: context.Background()}, "")
	n.kept = true // by this test
	got := make(chan error, 1)
	go func() { // ends with the try
		_, err := n.await(t.Context())
		got <- err
	}()
	<-n.wanted
	n.begin()
	n.ended(resp.ErrBroken)
	if err := <-got; !errors.Is(err, resp.ErrBroken) {
		t.Errorf("got %v", err)
	}
}
