// Package experiment has the experiments of the lab, one for each algorithm of the articles: each makes an exhibit fail
// at scripted steps on real servers, and then shows the sound lock in the same events.
package experiment

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/lab/internal/play"
	"github.com/interlock-go/interlock/lab/internal/story"
)

// Experiment is one of the lab.
type Experiment struct {
	ID    string
	Title story.Text
	About story.Text
	Needs []string // servers, as INTERLOCK_REQUIRE names them

	run func(p *play.Play)
}

// All returns the experiments in the order of the articles.
func All() []*Experiment {
	return []*Experiment{
		d01(), d02(), d03(), d04(), d05(), d06(), d07(), d08(), d09(), d10(), d11(), d12(),
		d13(), d14(), d15(), d16(), d17(),
	}
}

// Find returns the experiment of an id, in whatever case, or nil.
func Find(id string) *Experiment {
	for _, e := range All() {
		if strings.EqualFold(e.ID, id) {
			return e
		}
	}
	return nil
}

// Run runs the experiment. What was to be shown and was not is in the story, and an error of t.
func (e *Experiment) Run(ctx context.Context, t testing.TB) *story.Story {
	p := play.New(ctx, t, e.ID, e.Title, e.About)
	e.run(p)
	return p.Story()
}

const (
	key = "stock" // the lock of all experiments

	// lease is that of the sound lock where it must be lost or outlasted in an experiment: short, because the audience
	// waits for it, and long enough for a machine that stands still for two seconds between two renewals.
	lease = 4 * time.Second
)
