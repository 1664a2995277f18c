package search

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/lab/internal/play"
)

// vocabulary has every command that the model knows.
var vocabulary = [][]string{
	{"SETNX", key, "A"},
	{"SETNX", key, "B"},
	{"GETSET", key, "C"},
	{"GET", key},
	{"DEL", key},
	{"EXPIRE", key, "10"},
	{"SET", key, "A", "NX", "EX", "10"},
	{"SET", key, "B", "NX", "PX", "10000"},
	{"SET", key, "C"},
	{"EVAL", ownerChecked, "1", key, "A"},
	{"EVAL", ownerChecked, "1", key, "B"},
	{"WATCH", key},
	{"UNWATCH"},
	{"MULTI"},
	{"EXEC"},
}

// Random commands of two connections, with time that passes among them, are answered alike by the model and by Redis.
func TestModel_AnswersAsRedisDoes(t *testing.T) {
	server := servers.RedisServer(t, nil)
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 1))
		model := &state{clients: make([]client, 2)}
		conns := []*servers.RedisConn{dial(t, server), dial(t, server)}
		ask := func(who int, args ...string) string {
			reply, err := conns[who].Do(t.Context(), args...)
			if err != nil {
				t.Fatalf("%v: %v", args, err)
			}
			return play.Answer(reply, nil)
		}
		ask(0, "DEL", key)
		said := ""
		for range 60 {
			who := rng.IntN(2)
			args := vocabulary[rng.IntN(len(vocabulary))]
			if tx := model.clients[who].session.multi; !fits(args[0], tx) {
				continue
			}
			if rng.IntN(8) == 0 && !model.clients[0].session.multi && model.server.leased() {
				model.now += passes
				model.pass2(t, func(args ...string) string { return ask(0, args...) })
				said += "time passes\n"
			}
			reply, err := model.execute(who, args)
			if err != nil {
				t.Fatal(err)
			}
			got, want := ask(who, args...), play.Answer(reply, nil)
			if said += fmt.Sprintf("%d: %s  →  %s\n", who, play.Command(args), got); got != want {
				t.Fatalf("seed %d: the model answers %s:\n%s", seed, want, said)
			}
		}
	}
}

// What Redis refuses or queues, and the model would carry out, no search may answer.
func TestModel_OfCommandsAtTheWrongPlace_SaysThatItDoesNotKnow(t *testing.T) {
	for name, commands := range map[string][][]string{
		"WATCH in a transaction":   {{"MULTI"}, {"WATCH", key}},
		"UNWATCH in a transaction": {{"MULTI"}, {"UNWATCH"}},
		"MULTI in a transaction":   {{"MULTI"}, {"MULTI"}},
		"EXEC outside of one":      {{"EXEC"}},
		"SET without a value":      {{"SET", key}},
	} {
		model := &state{clients: make([]client, 1)}
		var err error
		for _, args := range commands {
			_, err = model.execute(0, args)
		}
		if err == nil {
			t.Errorf("%s: the model answers it", name)
		}
	}
}

// As in a replay, the connection breaks with the answer, and the next one watches nothing.
func TestModel_OfALostAnswer_ForgetsWhatTheConnectionWatched(t *testing.T) {
	e := &Exhibit{ID: "x", Program: func(ctx context.Context, c Client) error {
		_, _ = c.Do(ctx, "WATCH", key)
		_, _ = c.Do(ctx, "GET", key) // the answer is lost
		_, _ = c.Do(ctx, "MULTI")
		_, _ = c.Do(ctx, "SET", key, c.Name())
		_, err := c.Do(ctx, "EXEC")
		return err
	}}
	s := &state{clients: make([]client, 1)}
	for _, m := range []Move{{Sends, 0}, {Loses, 0}, {Sends, 0}, {Sends, 0}, {Sends, 0}, {Sends, 0}} {
		var err error
		if s, err = s.after(t.Context(), e, m); err != nil {
			t.Fatal(err)
		}
		s.touch() // others write
	}
	if past := s.clients[0].past; len(past) != 5 || past[4].reply == nil {
		t.Errorf("EXEC on the next connection: %+v", past)
	}
}

// fits reports whether a command may be sent inside of a transaction, or outside of one.
func fits(name string, multi bool) bool {
	switch name {
	case "WATCH", "MULTI", "UNWATCH":
		return !multi
	case "EXEC":
		return multi
	}
	return true
}

// pass2 ends the lease in the model and in Redis.
func (s *state) pass2(t *testing.T, ask func(args ...string) string) {
	t.Helper()
	if s.server.expire(s.now) {
		s.touch()
	}
	ask("PEXPIRE", key, "1")
	for ask("EXISTS", key) != "0" {
		time.Sleep(time.Millisecond) // real: the last millisecond of the key
	}
}

func dial(t *testing.T, server *servers.RedisNode) *servers.RedisConn {
	t.Helper()
	conn, err := servers.DialRedis(t.Context(), server.Addr(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}
