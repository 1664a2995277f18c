package experiment

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/lab/internal/play"
	"github.com/interlock-go/interlock/lab/internal/story"
)

func TestCaller_WhoseCallNeverReturns_EndsWithThePlay(t *testing.T) {
	for name, waits := range map[string]func(c *caller, p *play.Play){
		"for the lock":      (*caller).locked,
		"for a word of its": func(c *caller, p *play.Play) { c.hears(p, nil) },
		"for its turn":      func(c *caller, p *play.Play) { c.goesOn(p, make(chan struct{})) },
		"for one of many":   func(_ *caller, p *play.Play) { next(p, make(chan *taker)) },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { // ends with ctx
			ended <- play.Alone(func(t testing.TB) {
				p := play.New(ctx, t, "T", story.Same("title"), story.Same("about"))
				p.Act("x", "x")
				c := newCaller(p.Actor("A"))
				cancel()
				waits(&c, p)
			})
		}()
		select {
		case err := <-ended:
			if err == nil {
				t.Errorf("%s: it goes on as if the call had returned", name)
			}
		case <-time.After(patience / 2):
			t.Errorf("%s: it waits on", name)
		}
		cancel()
	}
}
