package pglock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/jackc/pgx/v5/pgconn"
)

// A wait that is broken off takes nothing away from who reads afterwards.
func TestGate_AWaitThatIsBrokenOff_LosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		defer here.Close()
		g := &gate{from: here}
		const ready = "Z\x00\x00\x00\x05I"
		answer := "D\x00\x00\x00\x0c" + ready + "vy" // in which a value looks like the end of an answer
		said := answer + ready + answer + ready
		for _, part := range []string{said[:3], said[3:12], said[12 : len(said)-7], said[len(said)-7:]} {
			if err := here.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
				t.Fatal(err)
			}
			come := make(chan bool)
			go func() { come <- g.await(2) }() // ends at the deadline
			if _, err := io.WriteString(there, part); err != nil {
				t.Fatal(err)
			}
			if all := part == said[len(said)-7:]; <-come != all {
				t.Errorf("after %q it says that all has come: %v", part, !all)
			}
		}
		got := make([]byte, len(said))
		if _, err := io.ReadFull(g, got); err != nil || string(got) != said {
			t.Errorf("read %q, %v", got, err)
		}
	})
}

// What the server says last, and that it has hung up, is read by who comes afterwards.
func TestGate_TheEndOfTheConnection_ComesAfterWhatWasSaid(t *testing.T) {
	here, there := net.Pipe()
	g := &gate{from: here}
	go func() {
		_, _ = io.WriteString(there, "goodbye") // as the test finds out
		_ = there.Close()
	}()
	if !g.await(1) {
		t.Error("it waits for a connection that has ended")
	}
	if got, err := io.ReadAll(g); string(got) != "goodbye" || err != nil {
		t.Errorf("read %q, %v", got, err)
	}
}

// An answer that there is no room for is left to the client library.
func TestGate_AnAnswerThatIsTooLong_IsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		defer here.Close()
		g := &gate{from: here}
		long := make([]byte, 2*len(g.room))
		go func() { _, _ = there.Write(long) }() // as the test finds out
		if err := here.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		if g.await(1) {
			t.Error("it says that the end has come")
		}
		if _, err := io.ReadFull(g, long); err != nil {
			t.Error(err)
		}
		if _, err := g.Read(long); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error(err)
		}
	})
}

// A question is answered to who asks it, and not left to the connection's goroutine.
func TestHere_AnswersWhatIsPrepared(t *testing.T) {
	d := open(t.Context(), t, sharedServer(t).Addr(), Options{Table: ownTable()})
	defer func() { _ = d.Close() }()
	for _, prepared := range []bool{false, true} {
		answered, err := ask(t.Context(), d, func(s *speaker) (bool, error) {
			if prepared {
				s.Ping()
			}
			_, answered := s.askInline([]line{{st: stmtPing}}, func(rows) bool { return true })
			return answered, nil
		})
		if answered != prepared || err != nil {
			t.Errorf("a question that is prepared (%v) is answered: %v, %v", prepared, answered, err)
		}
	}
}

// What the server is asked by way of a gate is as safe as it was: SCRAM is bound to the channel.
func TestGate_LeavesTheChannelBound(t *testing.T) {
	o := &servers.PostgresOptions{Password: "secret", TLS: true}
	n := servers.PostgresServer(t, o)
	config, err := pgconn.ParseConfig(n.URL(o))
	if err != nil {
		t.Fatal(err)
	}
	config.TLSConfig, config.Fallbacks, config.ChannelBinding = n.TLS().Clone(), nil, "require"
	config.TLSConfig.ServerName = config.Host
	d, err := New(t.Context(), config, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	for i := range 3 {
		r := request("x", fmt.Sprint(i))
		if _, err := d.Acquire(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		release(t, d, r)
	}
}

// Who locks again and again asks in his own goroutine. A server that hangs meanwhile does not keep him, and costs no
// hold.
func TestServer_ThatHangs_WhoAsksHimselfLeavesInTime(t *testing.T) {
	n := servers.PostgresServer(t, nil)
	c := client(t, n.Addr(), "", calm)
	kept := lock(t, c, "kept")
	pairs, failed := make(chan struct{}, 1), make(chan error, 1)
	go func() { // ends when the server hangs
		for {
			if err := pair(t.Context(), c); err != nil {
				failed <- err
				return
			}
			select {
			case pairs <- struct{}{}:
			default:
			}
		}
	}()
	for range 20 {
		<-pairs
	}
	n.Stop()
	select {
	case err := <-failed:
		if !errors.Is(err, interlock.ErrUnavailable) {
			t.Errorf("a call on a server that hangs says %v", err)
		}
	case <-time.After(patience): // which is shorter than the timeout of the sessions
		t.Error("a call on a server that hangs does not return")
	}
	n.Cont()
	unlock(t, lock(t, c, "x"))
	if err := kept.Err(); err != nil {
		t.Error(err)
	}
	unlock(t, kept)
}

// pair locks and unlocks, and waits for neither for long.
func pair(ctx context.Context, c *interlock.Client) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	l, err := c.Lock(ctx, "x")
	if err != nil {
		return err
	}
	return l.Unlock(ctx)
}
