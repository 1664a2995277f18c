package play

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/lab/internal/story"
)

func TestMain(m *testing.M) {
	ServeIfProcess()
	os.Exit(m.Run())
}

// direct runs a play of its own and returns what it failed with.
func direct(ctx context.Context, f func(p *Play)) (*story.Story, error) {
	var p *Play
	err := Alone(func(t testing.TB) {
		p = New(ctx, t, "T", story.Same("title"), story.Same("about"))
		f(p)
	})
	return p.Story(), err
}

func TestTwoBelievers_OfTheSoundLock_FailTheExperiment(t *testing.T) {
	both := func(p *Play) {
		p.Actor("A").Believes(true, "in", "in")
		p.Actor("B").Believes(true, "in", "in")
	}
	for name, c := range map[string]struct {
		begin func(p *Play)
		ok    bool
	}{
		"exhibit":   {func(p *Play) { p.Act("x", "x") }, true},
		"sound":     {func(p *Play) { p.Sound("x", "x") }, false},
		"and fence": {func(p *Play) { p.Fenced("x", "x") }, true},
	} {
		s, err := direct(t.Context(), func(p *Play) {
			c.begin(p)
			both(p)
		})
		if s.OK() != c.ok || (err == nil) != c.ok {
			t.Errorf("%s: OK is %v and the error %v, want %v", name, s.OK(), err, c.ok)
		}
		if last := s.Acts[0].Steps[2]; last.Kind != story.Clash {
			t.Errorf("%s: the clash is not told but %+v", name, last)
		}
	}
}

func TestShow_OfWhatDidNotHappen_FailsTheExperiment(t *testing.T) {
	s, err := direct(t.Context(), func(p *Play) {
		p.Act("x", "x")
		p.Actor("A").Believes(true, "in", "in")
		p.ShowClash("two were inside", "x")
	})
	if s.OK() || err == nil || !strings.Contains(err.Error(), "two were inside") {
		t.Errorf("OK is %v, the error %v", s.OK(), err)
	}
}

func TestActor_StandsStillBeforeACommand_AndGoesOnOrDies(t *testing.T) {
	p := New(t.Context(), t, "T", story.Same(""), story.Same(""))
	p.Act("x", "x")
	server := p.Redis()
	a := p.Actor("A")
	link := a.Dial(server.Addr(), "")
	var err error
	pause := a.UntilNth("SET", 2, func() {
		for _, value := range []string{"1", "2"} {
			if _, err = link.Do(p.Context(), "SET", "k", value); err != nil {
				return
			}
		}
	})
	if got := server.Ask("GET", "k"); got != "1" {
		t.Errorf("before the second SET the value is %v", got)
	}
	pause.Resume()
	if got := server.Ask("GET", "k"); got != "2" || err != nil {
		t.Errorf("after it the value is %v, the error %v", got, err)
	}
	a.Until("SET", func() { _, err = link.Do(p.Context(), "SET", "k", "3") }).Kill()
	if got := server.Ask("GET", "k"); got != "2" || !errors.Is(err, errDead) {
		t.Errorf("the dead has written: the value is %v, the error %v", got, err)
	}
}

func TestPause_OfAnExperimentThatFails_EndsWithIt(t *testing.T) {
	ended := make(chan error, 1)
	_, err := direct(t.Context(), func(p *Play) {
		p.Act("x", "x")
		a := p.Actor("A")
		a.Until("SET", func() { ended <- a.gate([]string{"SET"}) })
		p.Fatal("it fails before Resume")
	})
	if err == nil {
		t.Error("it has not failed")
	}
	select {
	case err := <-ended:
		if !errors.Is(err, errDead) {
			t.Errorf("the call goes on: %v", err)
		}
	default:
		t.Error("the call still stands still")
	}
}

func TestProcess_ThatStandsStill_IsOvertakenAndTold(t *testing.T) {
	p := New(t.Context(), t, "T", story.Same(""), story.Same(""))
	const lease = 4 * time.Second // which a busy machine renews in time
	p.Fenced("x", "x")
	server := p.Redis()
	a, b := p.Process("A", server.URL(), "k", lease), p.Process("B", server.URL(), "k", lease)
	goods := p.Resource(server, 10, a, b)
	if !a.TryLock() || b.TryLock() || !goods.Write(a, 9) {
		t.Fatal("A has not got the lock alone")
	}
	goods.Looks(a)
	a.Stop()
	b.BeginLock()
	if !b.Granted() || !goods.Write(b, 8) {
		t.Fatal("B has not got it after A's lease")
	}
	if goods.Resume(a, 7) || a.Reenter() || a.Unlock() {
		t.Error("A goes on as if it had the lock")
	}
	if plain, fenced := goods.Values(); plain != 7 || fenced != 8 {
		t.Errorf("A's late write leaves %d without a fence and %d behind one, want 7 and 8", plain, fenced)
	}
	b.Kill()
	if p.state("B") != story.Dead {
		t.Error("B is not dead")
	}
}
