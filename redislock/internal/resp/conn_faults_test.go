package resp

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/redislock/conn"
)

func TestConn_WhileTheServerHangs_EverythingEndsWithItsContext(t *testing.T) {
	s := servers.RedisServer(t, nil)
	w := start(t, s.Addr(), nil)
	call := echoCall("x")
	if _, err := w.Call(t.Context(), &call, InSource); err != nil {
		t.Fatal(err)
	}
	s.Stop()
	defer s.Cont()
	ways := map[string]func(ctx context.Context) error{
		"call": func(ctx context.Context) error { _, err := w.Call(ctx, &call, ByName); return err },
		"do":   func(ctx context.Context) error { _, err := w.Do(ctx, "PING"); return err },
		"multi": func(ctx context.Context) error {
			_, err := w.multi(ctx, []string{"PING"}, []string{"PING"})
			return err
		},
		"subscribe": func(ctx context.Context) error { return w.Subscribe(ctx, "subscribe", "c") },
		"await": func(ctx context.Context) error {
			_, err := w.Await(ctx, nil, time.Now().Add(time.Minute))
			return err
		},
		"dial": func(ctx context.Context) error {
			_, _, err := Dial(ctx, s.Addr(), &Options{}, nil)
			return err
		},
	}
	var all sync.WaitGroup
	for name, f := range ways {
		endsInTime(t, name, 50*time.Millisecond, f) // alone, so each is the reader
		for range 3 {
			all.Go(func() { endsInTime(t, name+" beside others", 250*time.Millisecond, f) })
		}
	}
	all.Wait()
	for range mostOwed + 100 { // more than may be owed
		all.Go(func() { endsInTime(t, "one of many calls", 2*time.Second, ways["call"]) })
	}
	all.Wait()
	endsInTime(t, "a call that is one too many", 50*time.Millisecond, ways["call"])
	s.Cont()
	if value, err := w.Do(t.Context(), "ECHO", "x"); value != "x" || err != nil {
		t.Errorf("after that: %v, %v", value, err)
	}
}

func TestConn_ThatCannotSend_EndsWithTheContextAndGoesOnLater(t *testing.T) {
	for name, tls := range map[string]bool{"plain": false, "TLS": true} {
		t.Run(name, func(t *testing.T) {
			s := servers.RedisServer(t, &servers.RedisOptions{TLS: tls})
			w := open(t, s.Addr(), &Options{TLS: s.TLS()}, nil)
			s.Stop()
			defer s.Cont()
			fill(t, w)
			s.Cont()
			if value, err := w.Do(t.Context(), "ECHO", "x"); value != "x" || err != nil {
				t.Errorf("after that: %v, %v", value, err)
			}
		})
	}
}

// fill sends more than fits into the buffers of a connection.
func fill(t *testing.T, w *Conn) {
	t.Helper()
	much := strings.Repeat("x", 5<<20)
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			endsInTime(t, "a large command", 600*time.Millisecond, func(ctx context.Context) error {
				_, err := w.Do(ctx, "ECHO", much)
				return err
			})
		})
	}
	all.Wait()
	endsInTime(t, "a command behind", 250*time.Millisecond, func(ctx context.Context) error {
		_, err := w.Do(ctx, "PING")
		return err
	})
}

// The bytes of each answer come one at a time, and calls are given up at any of them.
func TestConn_HalfAMessage_IsNotLostWhenTheReaderGivesUp(t *testing.T) {
	addr := fakeServer(t, func(c net.Conn, args []string) error {
		text := args[len(args)-1]
		for _, b := range []byte(
			fmt.Sprintf(">3\r\n$7\r\nmessage\r\n+c\r\n+%s\r\n$%d\r\n%s\r\n", text, len(text), text)) {
			if _, err := c.Write([]byte{b}); err != nil {
				return err
			}
			if rand.N(4) == 0 {
				<-time.After(100 * time.Microsecond)
			}
		}
		return nil
	})
	var pushed atomic.Int64
	w := start(t, addr, func(kind, channel, _ string) {
		if kind != "message" || channel != "c" {
			t.Errorf("a push of kind %q on %q", kind, channel)
		}
		pushed.Add(1)
	})
	var all sync.WaitGroup
	var sent, answered atomic.Int64
	for g := range 8 {
		all.Go(func() {
			for i := range 20 {
				text := fmt.Sprint(g, "-", i)
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.N(400_000))*time.Microsecond)
				value, err := w.Do(ctx, "ECHO", text)
				cancel()
				if !isRefused(err) {
					sent.Add(1)
				}
				if err == nil {
					answered.Add(1)
				}
				if err == nil && value != text {
					t.Errorf("%q is answered %q", text, value)
				} else if err != nil && !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if value, err := w.Do(t.Context(), "ECHO", "last"); value != "last" || err != nil {
		t.Errorf("after that: %v, %v", value, err)
	}
	if n := pushed.Load(); n != sent.Load()+1 {
		t.Errorf("%d pushes came with %d answers", n, sent.Load()+1)
	}
	t.Logf("%d of %d calls were answered in time", answered.Load(), sent.Load())
}

func TestConn_ThatIsReset_FailsEverythingAndTellsWhatWasNotSent(t *testing.T) {
	addr := servers.Redis(t)
	proxy := servers.NewProxy(t, addr)
	var called, open int64
	for range 20 {
		w := start(t, proxy.Addr(), nil)
		call := conn.Call{Script: incrScript, Keys: []string{"n"}}
		var ok, unknown atomic.Int64
		var callers sync.WaitGroup
		for range 32 {
			callers.Go(func() {
				for {
					_, err := w.Call(t.Context(), &call, InSource)
					switch {
					case err == nil:
						ok.Add(1)
						continue
					case errors.Is(err, ErrBroken):
						unknown.Add(1)
					case !errors.Is(err, conn.ErrUnsent):
						t.Error(err)
					}
					return
				}
			})
		}
		eventually(t, "calls to succeed", func() bool { return ok.Load() > 100 })
		proxy.Reset()
		callers.Wait()
		<-w.closed
		called += ok.Load()
		open += unknown.Load()
	}
	var ran int64
	_, _ = fmt.Sscan(admin(t, addr, "GET", "n"), &ran)
	if ran < called || ran > called+open {
		t.Errorf("%d calls succeeded and %d are open, but %d ran", called, open, ran)
	}
	t.Logf("%d succeeded, %d open, %d ran", called, open, ran)
}

func TestConn_WhatIsNoAnswer_BreaksIt(t *testing.T) {
	for _, nonsense := range []string{
		"HTTP/1.1 400 Bad Request\r\n", "+one\r\n+two\r\n", "$99999999\r\n", "*1\r\n:x\r\n", ">0\r\n", ">1\r\n:1\r\n",
		"\r\n", ":1\n",
	} {
		w := start(t, fakeServer(t, func(c net.Conn, _ []string) error {
			_, err := c.Write([]byte(nonsense))
			return err
		}), nil)
		value, err := w.Do(t.Context(), "PING")
		if err == nil && value != "one" {
			t.Errorf("%q is taken for %v", nonsense, value)
		}
		select {
		case <-w.closed:
		case <-time.After(patience):
			t.Errorf("%q has not broken the connection", nonsense)
		}
	}
}

func TestConn_WithoutAnswers_BreaksTenSecondsAfterTheLastByte(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer far.Close()
		w := newConn(near, &socket{Conn: near}, nil, func(string, string, string) {})
		defer w.Close()
		time.Sleep(time.Hour) // without anything owed nothing happens
		go func() {           // ends with the command
			if _, err := far.Read(make([]byte, 1000)); err != nil {
				t.Error(err)
			}
		}()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := w.Do(ctx, "PING"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		begin := time.Now()
		time.Sleep(5 * time.Second)
		if _, err := far.Write([]byte(">1\r\n+news\r\n")); err != nil { // it lives
			t.Error(err)
		}
		<-w.closed
		if d := time.Since(begin); d < 15*time.Second || d > 18*time.Second {
			t.Errorf("the connection broke after %v", d)
		}
	})
}

func TestDial_WhoIsNotLetIn_IsNotToldThePassword(t *testing.T) {
	const secret = "hunter2secret"
	s := servers.RedisServer(t, &servers.RedisOptions{Password: "another"})
	old := fakeServer(t, nil)
	for addr, want := range map[string]string{s.Addr(): "WRONGPASS", old: ErrNoRESP3.Error()} {
		_, _, err := Dial(t.Context(), addr, &Options{Password: secret, ClientName: "x"}, nil)
		if err == nil || !strings.Contains(fmt.Sprint(err), want) || strings.Contains(fmt.Sprintf("%+v", err), secret) {
			t.Errorf("got %v, want %s", err, want)
		}
		if errors.Is(err, ErrNoRESP3) != (addr == old) {
			t.Errorf("got %v", err)
		}
	}
	_, _, err := Dial(t.Context(), "127.0.0.1:1", &Options{}, nil)
	var dialling *net.OpError
	if !errors.As(err, &dialling) || dialling.Op != "dial" {
		t.Errorf("without a server: %v", err)
	}
	if _, _, err := Dial(t.Context(), servers.Redis(t), &Options{DB: 99}, nil); err == nil {
		t.Errorf("a database that there is not: %v", err)
	}
}

// A server that lets nobody else connect says so to the first command. It is not too old to know that.
func TestDial_ToAServerWithTooManyClients_SaysSo(t *testing.T) {
	s := servers.RedisServer(t, &servers.RedisOptions{Config: map[string]string{"maxclients": "1"}})
	start(t, s.Addr(), nil)
	_, _, err := Dial(t.Context(), s.Addr(), &Options{}, nil)
	var refusal ServerError
	if !errors.As(err, &refusal) || errors.Is(err, ErrNoRESP3) ||
		conn.JudgeAnswer(refusal.Error(), "").Verdict != conn.Later {
		t.Errorf("got %v", err)
	}
}

func TestDial_GreetsAndChoosesTheDatabase(t *testing.T) {
	s := servers.RedisServer(t, &servers.RedisOptions{Password: "another"})
	told := func(string, string, string) {}
	w, g, err := Dial(t.Context(), s.Addr(), &Options{Password: "another", ClientName: "me", DB: 3}, told)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if !g.RESP3 || g.Replica || g.Major < 6 {
		t.Errorf("the greeting is %+v", g)
	}
	info, err := w.Do(t.Context(), "CLIENT", "INFO")
	if text := fmt.Sprint(info); err != nil || !strings.Contains(text, " name=me ") ||
		!strings.Contains(text, " db=3 ") {
		t.Errorf("got %s, %v", text, err)
	}
}

func TestDial_ToAServerThatIsNotTrusted_IsAnErrorOfDialling(t *testing.T) {
	s := servers.RedisServer(t, &servers.RedisOptions{TLS: true})
	config := s.TLS()
	config.RootCAs = nil
	_, _, err := Dial(t.Context(), s.Addr(), &Options{TLS: config}, nil)
	var dialling *net.OpError
	if !errors.As(err, &dialling) || dialling.Op != "dial" {
		t.Errorf("got %v", err)
	}
}

// The role of the reader passes on at once, not when the Conn itself begins to read.
func TestConn_WhoLeavesAsTheReader_WakesTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer far.Close()
		w := newConn(near, &socket{Conn: near}, nil, func(string, string, string) {})
		defer w.Close()
		begin := time.Now()
		go func() { // ends with the last answer
			for range 3 {
				if _, err := far.Read(make([]byte, 1000)); err != nil {
					t.Error(err)
				}
			}
			for range 3 {
				time.Sleep(time.Millisecond)
				if _, err := far.Write([]byte("+x\r\n")); err != nil {
					t.Error(err)
				}
			}
		}()
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				if value, err := w.Do(t.Context(), "PING"); value != "x" || err != nil {
					t.Errorf("got %v, %v", value, err)
				}
			})
			synctest.Wait()
		}
		all.Wait()
		if d := time.Since(begin); d != 3*time.Millisecond {
			t.Errorf("the answers were taken after %v, want 3 ms", d)
		}
	})
}
