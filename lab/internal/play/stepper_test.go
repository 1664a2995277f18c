package play

import (
	"context"
	"net"
	"testing"
	"time"
)

// deaf is a server that reads the first byte, calls heard, and never answers.
func deaf(t *testing.T, heard func()) (addr string) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() { // ends when the client hangs up, or with l
		conn, err := l.Accept()
		if err != nil {
			return
		}
		if _, err := conn.Read(make([]byte, 1)); err == nil {
			heard()
		}
		<-t.Context().Done()
		_ = conn.Close()
	}()
	return l.Addr().String()
}

// Each round meets the client at another place: in its command, about to stand still, or at its end.
func TestKill_OfAStepperWhosePlayHasEnded_EndsTheClient(t *testing.T) {
	for range 20 {
		for name, early := range map[string]bool{"before its first command": true, "in a command": false} {
			ctx, cancel := context.WithCancel(t.Context())
			addr, ended := deaf(t, cancel), make(chan struct{})
			go func() {
				defer close(ended)
				_, _ = direct(ctx, func(p *Play) {
					p.Act("x", "x")
					line := p.Actor("A").Line(addr, "")
					s := line.link.actor.Stepper(func() { _, _ = line.Do(p.Context(), "PING") })
					defer s.Kill()
					if early {
						cancel()
					}
					s.Step()
				})
			}()
			select {
			case <-ended:
			case <-time.After(patience / 2):
				t.Fatalf("a client that was killed %s has not ended", name)
			}
			cancel()
		}
	}
}
