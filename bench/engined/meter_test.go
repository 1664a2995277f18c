package engined_test

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/interlock-go/interlock/bench/engined"
	goredis "github.com/redis/go-redis/v9"
)

// start starts a server that ends with the test.
func start(t *testing.T) *engined.Server {
	t.Helper()
	s, err := engined.Start(t.Context(), engined.Redis)
	if errors.Is(err, engined.ErrMissing) && os.Getenv("INTERLOCK_REQUIRE") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func client(t *testing.T, s *engined.Server) *goredis.Client {
	t.Helper()
	c := goredis.NewClient(&goredis.Options{Addr: s.Addr, PoolSize: 1})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func count(t *testing.T, m *engined.Meter) engined.Count {
	t.Helper()
	c, err := m.Count(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestMeter_CountsWhatClientsSend_AndNotWhatScriptsRun(t *testing.T) {
	s := start(t)
	c, m := client(t, s), engined.NewMeter(s.Addr, []string{"set"})
	defer m.Close()
	ctx := t.Context()
	if err := c.Ping(ctx).Err(); err != nil { // opens its connection
		t.Fatal(err)
	}
	count(t, m) // opens the meter's
	before, begin := count(t, m), time.Now()
	script := goredis.NewScript(`for i = 1, 100 do redis.call('GET', 'a') redis.call('DEL', 'b') end return 1`)
	err := errors.Join(
		c.Set(ctx, "a", "1", 0).Err(),
		script.Eval(ctx, c, nil).Err(), script.EvalSha(ctx, c, nil).Err(),
		c.BLPop(ctx, 1, "list").Err(), // ends by its time: a wait is one command
		c.Ping(ctx).Err(),
	)
	if err != nil && !errors.Is(err, goredis.Nil) {
		t.Fatal(err)
	}
	want := engined.Count{Commands: 4, Pings: 1}
	got := count(t, m).Sub(before)
	took := got.Scripts
	if got.Scripts = 0; got != want {
		t.Errorf("counted %+v, want %+v: SET, EVAL, EVALSHA, BLPOP, and a PING", got, want)
	}
	if took <= 0 || took > time.Since(begin) {
		t.Errorf("two scripts ran for %v, within %v", took, time.Since(begin))
	}
}

func TestMeter_CountsNothingOfItself(t *testing.T) {
	s := start(t)
	m := engined.NewMeter(s.Addr, nil)
	defer m.Close()
	count(t, m)
	before := count(t, m)
	for range 5 {
		count(t, m)
	}
	if got := count(t, m).Sub(before); got != (engined.Count{}) {
		t.Errorf("counted %+v although nobody sent anything", got)
	}
}

func TestMeter_Empty_RemovesEveryKey(t *testing.T) {
	s := start(t)
	c, m := client(t, s), engined.NewMeter(s.Addr, nil)
	defer m.Close()
	if err := errors.Join(c.Set(t.Context(), "a", "1", 0).Err(), m.Empty(t.Context())); err != nil {
		t.Fatal(err)
	}
	if n, err := c.DBSize(t.Context()).Result(); n != 0 || err != nil {
		t.Errorf("%d keys left, %v", n, err)
	}
}
