package resp

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/longrun"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/redislock/conn"
)

func TestConn_AnswersScriptsAndCommands(t *testing.T) {
	w := start(t, servers.Redis(t), nil)
	ctx := t.Context()
	call := echoCall("x\r\n")
	var refusal ServerError
	if _, err := w.Call(ctx, &call, ByName); !errors.As(err, &refusal) ||
		!strings.HasPrefix(refusal.Error(), "NOSCRIPT ") {
		t.Errorf("a script that is not known: %v", err)
	}
	for range 2 {
		if text, err := w.Call(ctx, &call, InSource); text != "x\r\n" || err != nil {
			t.Errorf("got %q, %v", text, err)
		}
	}
	if text, err := w.Call(ctx, &call, ByName); text != "x\r\n" || err != nil {
		t.Errorf("got %q, %v", text, err)
	}
	none := conn.Call{Script: conn.NewScript(`return false`)}
	if _, err := w.Call(ctx, &none, InSource); !errors.Is(err, errNil) {
		t.Errorf("a script that returns nil: %v", err)
	}
	if value, err := w.Do(ctx, "CONFIG", "GET", "databases"); !reflect.DeepEqual(value, []any{"databases", "16"}) ||
		err != nil {
		t.Errorf("got %v, %v", value, err)
	}
	answers, err := w.multi(ctx, []string{"SET", "k", "v"}, []string{"INCR", "k"}, []string{"GET", "none"},
		[]string{"STRLEN", "k"})
	want := []result{
		{"OK", nil}, {nil, ServerError("ERR value is not an integer or out of range")}, {}, {int64(1), nil},
	}
	if err != nil || !reflect.DeepEqual(answers, want) { //nolint:govet // errors of one type, with texts alone
		t.Errorf("got %v, %v, want %v", answers, err, want)
	}
	for _, args := range [][]string{nil, {""}, {"subscribe", "x"}, {"MONITOR"}} {
		if _, err := w.Do(ctx, args...); !isRefused(err) {
			t.Errorf("%q: %v", args, err)
		}
	}
}

func TestConn_TakesLargeAnswersAndManyCommandsAtOnce(t *testing.T) {
	w := start(t, servers.Redis(t), nil)
	big := strings.Repeat("0123456789", 100_000)
	for range 3 {
		if value, err := w.Do(t.Context(), "ECHO", big); value != big || err != nil {
			t.Fatalf("%d bytes came back (%v)", len(fmt.Sprint(value)), err)
		}
	}
	commands := make([][]string, 20_000)
	for i := range commands {
		commands[i] = []string{"ECHO", strconv.Itoa(i)}
	}
	for range 2 {
		answers, err := w.multi(t.Context(), commands...)
		if err != nil {
			t.Fatal(err)
		}
		for i, a := range answers {
			if a.value != strconv.Itoa(i) {
				t.Fatalf("%d is answered %v", i, a)
			}
		}
	}
}

// Calls of all kinds, many of which are given up at some moment: whatever succeeds has the right answer, and the Conn
// survives.
func TestConn_ManyGoroutines_GetTheirOwnAnswers(t *testing.T) {
	s := servers.RedisServer(t, &servers.RedisOptions{TLS: true})
	plain := servers.NewProxy(t, servers.Redis(t))
	plain.Delay(servers.ToClient, time.Millisecond)
	for name, w := range map[string]*Conn{
		"plain":   start(t, servers.Redis(t), nil),
		"TLS":     open(t, s.Addr(), &Options{TLS: s.TLS()}, nil),
		"delayed": start(t, plain.Addr(), nil),
	} {
		t.Run(name, func(t *testing.T) {
			var answers, ended atomic.Int64
			var callers sync.WaitGroup
			for g := range longrun.Of(64, 256) {
				callers.Go(func() {
					for i := range 60 {
						err := callSomehow(t, w, fmt.Sprint(g, "-", i))
						switch {
						case err == nil:
							answers.Add(1)
						case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
							ended.Add(1)
						default:
							t.Errorf("call: %v", err)
							return
						}
					}
				})
			}
			callers.Wait()
			t.Logf("%d answers, %d calls given up", answers.Load(), ended.Load())
			if value, err := w.Do(t.Context(), "ECHO", "x"); value != "x" || err != nil {
				t.Errorf("after that: %v, %v", value, err)
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.owed != 0 || w.queue.n != 0 || len(w.out) != 0 {
				t.Errorf("%d answers are owed to %d requests, %d bytes unsent", w.owed, w.queue.n, len(w.out))
			}
		})
	}
}

// callSomehow asks for text in one of several ways, with one of several kinds of contexts.
func callSomehow(t *testing.T, w *Conn, text string) error {
	ctx := context.Background()
	switch rand.N(4) {
	case 0:
	case 1:
		short, cancel := context.WithTimeout(t.Context(), time.Duration(rand.N(5_000))*time.Microsecond)
		defer cancel()
		ctx = short
	default:
		long, cancel := context.WithCancel(t.Context())
		defer time.AfterFunc(time.Duration(rand.N(20_000))*time.Microsecond, cancel).Stop()
		defer cancel()
		ctx = long
	}
	var got any
	var err error
	switch rand.N(8) {
	case 0:
		var list []result
		list, err = w.multi(ctx, []string{"PING"}, []string{"ECHO", text}, []string{"PING"})
		if err == nil {
			got = list[1].value
		}
	case 1:
		got, err = w.Do(ctx, "ECHO", text+strings.Repeat("x", 5_000))
		got, _, _ = strings.Cut(fmt.Sprint(got), "x")
	case 2:
		if err = w.Subscribe(ctx, "subscribe", text); err == nil {
			err = w.Subscribe(ctx, "unsubscribe", text)
		}
		got = text
	default:
		call := echoCall(text)
		got, err = w.Call(ctx, &call, InSource)
	}
	if err == nil && got != text {
		t.Errorf("%q is answered %q", text, got)
	}
	return err
}

func TestConn_Pushes_ComeInOrderAndBeforeTheAnswersThatFollow(t *testing.T) {
	var next atomic.Int64
	addr := servers.Redis(t)
	w := start(t, addr, func(kind, channel, message string) {
		if kind != "message" {
			return
		}
		if n := next.Load(); channel != "c" || message != strconv.FormatInt(n, 10) {
			t.Errorf("got %q on %q, want %d", message, channel, n)
		}
		next.Add(1)
	})
	if err := w.Subscribe(t.Context(), "subscribe", "c"); err != nil {
		t.Fatal(err)
	}
	// Redis sends what a script publishes to its own connection before the answer of the script.
	push := conn.Call{
		Script: conn.NewScript(
			`local n = redis.call('INCR', KEYS[1]) redis.call('PUBLISH', 'c', n - 1) return tostring(n)`),
	}
	push.Keys = []string{"n"}
	var callers sync.WaitGroup
	for range 32 {
		callers.Go(func() {
			for range 100 {
				text, err := w.Call(t.Context(), &push, InSource)
				if n, _ := strconv.ParseInt(text, 10, 64); err != nil || next.Load() < n {
					t.Errorf("after call %s (%v) %d pushes have come", text, err, next.Load())
				}
			}
		})
	}
	callers.Wait()
	if next.Load() != 3200 {
		t.Errorf("%d pushes came", next.Load())
	}
}

func TestConn_Subscribe_TellsAndConfirms(t *testing.T) {
	told := make(chan string, 10)
	w := start(t, servers.Redis(t), func(kind, channel, message string) {
		told <- kind + " " + channel + " " + message
	})
	for _, kind := range []string{"subscribe", "unsubscribe", "unsubscribe", "ssubscribe", "sunsubscribe"} {
		if err := w.Subscribe(t.Context(), kind, "c"); err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		if got := <-told; got != kind+" c " {
			t.Errorf("told %q, want %q", got, kind)
		}
	}
}

func TestConn_Subscribe_ThatIsForbidden_IsAnError(t *testing.T) {
	s := servers.RedisServer(t, &servers.RedisOptions{Users: []string{"bob on >secret ~* +@all resetchannels &yes"}})
	w := open(t, s.Addr(), &Options{Username: "bob", Password: "secret"}, nil)
	var refusal ServerError
	if err := w.Subscribe(t.Context(), "subscribe", "no"); !errors.As(err, &refusal) {
		t.Errorf("got %v, want an error of the server", err)
	}
	if err := w.Subscribe(t.Context(), "subscribe", "yes"); err != nil {
		t.Error(err)
	}
}

func TestConn_ThatIsIdle_HearsPushesAndItsEnd(t *testing.T) {
	addr := servers.Redis(t)
	told := make(chan string, 10)
	w := start(t, addr, func(kind, _, message string) { told <- kind + message })
	if err := w.Subscribe(t.Context(), "subscribe", "c"); err != nil {
		t.Fatal(err)
	}
	<-told
	for i := range 3 {
		admin(t, addr, "PUBLISH", "c", strconv.Itoa(i))
		if got := <-told; got != "message"+strconv.Itoa(i) {
			t.Errorf("told %q", got)
		}
	}
	admin(t, addr, "CLIENT", "KILL", "TYPE", "pubsub")
	select {
	case <-w.closed:
	case <-time.After(patience):
		t.Error("nobody noticed that the connection broke")
	}
	if _, err := w.Do(t.Context(), "PING"); !errors.Is(err, conn.ErrUnsent) {
		t.Errorf("after that: %v", err)
	}
}

func TestConn_Await_EndsWithNewsTimeContextNudgeOrTheConnection(t *testing.T) {
	addr := servers.Redis(t)
	p := newPing(t, addr, "c")
	soon := func() time.Time { return time.Now().Add(20 * time.Millisecond) }
	late := func() time.Time { return time.Now().Add(time.Minute) }
	inTime := func(what string, f func() (bool, error), heard bool, want error) {
		t.Helper()
		begin := time.Now()
		got, err := f()
		if got != heard || !errors.Is(err, want) {
			t.Errorf("%s: %v, %v", what, got, err)
		}
		if d := time.Since(begin); d > patience {
			t.Errorf("%s took %v", what, d)
		}
	}
	for range 3 {
		inTime("time", func() (bool, error) { return p.w.Await(t.Context(), p.news, soon()) }, false, nil)
		if err := p.say("c"); err != nil {
			t.Fatal(err)
		}
		inTime("news before", func() (bool, error) { return p.w.Await(t.Context(), p.news, late()) }, true, nil)
		time.AfterFunc(20*time.Millisecond, func() { admin(t, addr, "PUBLISH", "c", "x") })
		inTime("news", func() (bool, error) { return p.w.Await(t.Context(), p.news, late()) }, true, nil)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		inTime("context", func() (bool, error) {
			return p.w.Await(ctx, p.news, late())
		}, false, context.DeadlineExceeded)
		cancel()
		time.AfterFunc(20*time.Millisecond, func() {
			p.news <- struct{}{}
			p.w.Nudge()
		})
		inTime("nudge", func() (bool, error) { return p.w.Await(t.Context(), p.news, late()) }, true, nil)
	}
	killed := make(chan struct{})
	time.AfterFunc(20*time.Millisecond, func() {
		defer close(killed)
		admin(t, addr, "CLIENT", "KILL", "TYPE", "pubsub")
	})
	inTime("end", func() (bool, error) { return p.w.Await(t.Context(), p.news, late()) }, false, ErrBroken)
	<-killed
}

// Waiters and callers in turn are readers for each other; every message must reach its waiter at once.
func TestConn_Await_ByManyBesideCalls(t *testing.T) {
	const many = 64
	var news [many]chan struct{}
	for i := range news {
		news[i] = make(chan struct{}, 4) // one for each that goes round
	}
	w := start(t, servers.Redis(t), func(kind, _, message string) {
		if i, err := strconv.Atoi(message); kind == "message" && err == nil {
			news[i] <- struct{}{}
		}
	})
	if err := w.Subscribe(t.Context(), "subscribe", "c"); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range many {
		all.Go(func() {
			for range 100 { // a ring: who is woken wakes the next one
				ctx, cancel := context.WithCancel(t.Context())
				heard, err := w.Await(ctx, news[i], time.Now().Add(10*time.Second))
				cancel()
				if !heard || err != nil {
					t.Errorf("%d heard nothing: %v", i, err)
					return
				}
				if _, err := w.Do(t.Context(), "PUBLISH", "c", strconv.Itoa((i+1)%many)); err != nil {
					t.Error(err)
				}
				if rand.N(4) == 0 {
					short, cancel := context.WithTimeout(t.Context(), time.Duration(rand.N(1_000))*time.Microsecond)
					_, _ = w.Do(short, "PING")
					cancel()
				}
			}
		})
	}
	for i := range 4 {
		if _, err := w.Do(t.Context(), "PUBLISH", "c", strconv.Itoa(i*many/4)); err != nil {
			t.Fatal(err)
		}
	}
	all.Wait()
}

func TestConn_Close_EndsWhatIsUnderWay(t *testing.T) {
	addr := servers.Redis(t)
	for range 20 {
		w := start(t, addr, nil)
		var all sync.WaitGroup
		for i := range 32 {
			all.Go(func() {
				for err := error(nil); err == nil; {
					if i%4 == 0 {
						_, err = w.Await(t.Context(), nil, time.Now().Add(time.Minute))
					} else {
						_, err = w.Do(t.Context(), "PING")
					}
				}
			})
		}
		if _, err := w.Do(t.Context(), "PING"); err != nil {
			t.Error(err)
		}
		w.Close()
		all.Wait()
	}
}
